int fifochannel(fifo);
task reader() {
    spolicy(FIFO_RM);
    int val;
    while (1) {
        cread(fifo, val);
        printf("fifo: %d\n", val);
    }
}

task writer() {
    spolicy(EDF);
    int w = 0;
    while(1) {
        cwrite(fifo, w);
        fdelay(100, ms);
        w++;
    }
}

void main(){
    cinit(fifo, 0);
    reader();
    writer();
}
/*
 * Listing 2 of Austad et al. 2023, without a header: the reader has each value when it is written.
 * duration: 350ms
 * trace: 0 main start, end
 * trace: 0 reader start
 * trace: 0..300ms/100ms reader read fifo
 * trace: 0 writer start, write fifo, arrive 16
 * trace: 100ms..300ms/100ms writer release 16, write fifo, arrive 16
 * output: fifo: 0
 * output: fifo: 1
 * output: fifo: 2
 * output: fifo: 3
 */
