//! After its construction a station allocates nothing: counted.
#![allow(unsafe_code)]

use crate::generator::{Dice, program};
use onbeat_model::units::MacAddress;
use onbeat_runtime::network_code::instruction::BufferId;
use onbeat_runtime::network_code::station::{
    INSTRUCTIONS_PER_ADVANCE, Observer, Station, Transmission,
};
use onbeat_runtime::network_code::timing::Cycles;
use onbeat_runtime::network_code::trace::TraceEntry;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts what each thread allocates.
struct Counting;

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending allocates without being counted.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts what comes.
#[derive(Default)]
struct Tally {
    instructions: usize,
    words: usize,
}

impl Observer for Tally {
    fn trace(&mut self, _: TraceEntry) {
        self.instructions += 1;
    }

    fn transmit(&mut self, _: Cycles, transmission: Transmission<'_>) {
        if let Transmission::Data { words, .. } = transmission {
            self.words += words.len();
        }
    }
}

#[test]
fn a_station_allocates_nothing_after_its_construction() {
    let (mut tally, mut received) = (Tally::default(), 0);
    for seed in 0..200 {
        let program = program(&mut Dice::new(seed));
        let mut station = Station::new(program.clone());
        let before = ALLOCATIONS.with(Cell::get);
        for step in 0..400 {
            let at = Cycles(step * 25);
            let format = &program.messages[step as usize % program.messages.len()];
            station.data_received(at, format.id, (0..format.words).map(u32::from));
            station.sync_received(at, step as u32, MacAddress([2; 6]));
            let _ = station.write(BufferId(0), &[1]);
            let so_far = tally.instructions;
            station.advance(at, &mut tally);
            assert!(tally.instructions - so_far <= INSTRUCTIONS_PER_ADVANCE);
        }
        assert_eq!(ALLOCATIONS.with(Cell::get), before, "seed {seed}");
        received += station.counters().data_received;
    }
    // It was no station that does nothing.
    assert!(tally.instructions > 10_000, "{}", tally.instructions);
    assert!(tally.words > 100 && received > 10_000, "{} {received}", tally.words);
    let before = ALLOCATIONS.with(Cell::get);
    drop(vec![0]);
    assert_eq!(ALLOCATIONS.with(Cell::get), before + 1);
}
