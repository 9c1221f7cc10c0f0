int fifochannel(fifo);
task reader() {
    spolicy(EDF);
    int r;
    while (1) {
        cread(fifo, r);
        printf("%d", r);
        fdelay(50, ms);
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
