task sensor() {
    int val;
    while(1) {
        val = sense();
        cwrite(chan, val);
        fdelay(10, ms);
    }
}

task processor() { int val;
    while(1) {
        cread(chan, val);
        process(val);
    }
}
int fifochannel(chan, 4);
