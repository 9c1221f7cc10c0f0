int main(void) {
    int val;
    setup();
    sdelay(10, ms);
    while (1) {
        val = sense();
        process(val);
        fdelay(20, ms);
    }
}
