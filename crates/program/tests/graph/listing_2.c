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
