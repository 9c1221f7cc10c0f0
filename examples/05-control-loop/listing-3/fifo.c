int fifochannel(chan); int sense(void); void process(int); task sensor() {
    int val;
    while(1) {
        val = sense();
        cwrite(chan, val);
        fdelay(10, ms);
    }
}

task processor() {
    while(1) {
        int val; cread(chan, val);
        process(val);
    }
}

/* Listing 3 of Austad et al. 2023, its lines where the paper has them, its abstract channel a
 * fifochannel. `onbeat tfg` gives the paper's Table 1. */
int sense(void) { return 1; }
void process(int value) { (void)value; }
int main(void) { sensor(); processor(); }
