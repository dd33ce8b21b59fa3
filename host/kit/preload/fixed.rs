//! A library that Linux loads into a build tool before the others (`LD_PRELOAD`). The tool gets the same random bytes and the
//! same time in each run.
//!
//! Builds of JavaScript and Python run the plugin's modules once and store the memory of the engine in the component. The engine
//! reads random numbers and clocks while it starts, through the functions below. Python also reads the times of files: see
//! `files.rs`. `build.rs` compiles this file.

#![no_std]

mod files;

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

/// Each random byte.
const RANDOM: u8 = 7;

/// Each time, in seconds since 1970: the evening of 8 September 2001.
const TIME: i64 = 1_000_000_000;

/// `timespec` and `timeval`, on 64-bit Linux.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Time {
    seconds: i64,
    part: i64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(buffer: *mut u8, length: usize, _flags: c_uint) -> isize {
    // SAFETY: the caller passes a buffer of this length.
    unsafe { buffer.write_bytes(RANDOM, length) };
    length.cast_signed()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn getentropy(buffer: *mut u8, length: usize) -> c_int {
    // SAFETY: the caller passes a buffer of this length.
    unsafe { buffer.write_bytes(RANDOM, length) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(_clock: c_int, time: *mut Time) -> c_int {
    // SAFETY: the caller passes a pointer to a `timespec`.
    unsafe { time.write(Time { seconds: TIME, part: 0 }) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut Time, _zone: *mut c_void) -> c_int {
    if !time.is_null() {
        // SAFETY: the caller passes null or a pointer to a `timeval`.
        unsafe { time.write(Time { seconds: TIME, part: 0 }) };
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(time: *mut i64) -> i64 {
    if !time.is_null() {
        // SAFETY: the caller passes null or a pointer to a `time_t`.
        unsafe { time.write(TIME) };
    }
    TIME
}

type Syscall = unsafe extern "C" fn(c_long, c_long, c_long, c_long, c_long, c_long, c_long) -> c_long;

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// The library after this one (`RTLD_NEXT`).
const NEXT: *mut c_void = usize::MAX as *mut c_void;

#[cfg(target_arch = "x86_64")]
const GETRANDOM: c_long = 318;
#[cfg(target_arch = "aarch64")]
const GETRANDOM: c_long = 278;

/// Programs with an old version of the crate `getrandom` call the system in this way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if number == GETRANDOM {
        // SAFETY: these are the arguments of `getrandom`.
        unsafe { (a as *mut u8).write_bytes(RANDOM, b.cast_unsigned() as usize) };
        return b;
    }
    // SAFETY: the C library has this function, with this signature.
    let next = unsafe { core::mem::transmute::<*mut c_void, Syscall>(dlsym(NEXT, c"syscall".as_ptr())) };
    // SAFETY: the arguments are those of the caller.
    unsafe { next(number, a, b, c, d, e, f) }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
