/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#error "network channels are not available on FreeRTOS: build this program for Linux"
