int channels;
