//! Fixed files: after `toolgate_fix_files`, all files of the process have the same times, numbers and count of links, and the names in
//! a folder are sorted.
//!
//! componentize-py asks the kernel for them without the C library, so this library cannot replace a function. A seccomp filter
//! traps the calls instead: the kernel sends SIGSYS to the thread, and the handler makes the call and changes its result.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use super::TIME;

#[cfg(target_arch = "x86_64")]
mod machine {
    /// `AUDIT_ARCH_X86_64`.
    pub(super) const ARCHITECTURE: u32 = 0xc000_003e;
    pub(super) const LSEEK: usize = 8;
    pub(super) const MMAP: usize = 9;
    pub(super) const MUNMAP: usize = 11;
    pub(super) const NEWFSTATAT: usize = 262;
    pub(super) const STATX: usize = 332;
    pub(super) const GETDENTS64: usize = 217;
    /// The others are `stat`, `fstat` and `lstat`.
    pub(super) const TRAPPED: [usize; 6] = [NEWFSTATAT, STATX, GETDENTS64, 4, 5, 6];

    /// `stat`.
    #[repr(C)]
    pub(super) struct Stat {
        pub(super) device: u64,
        pub(super) number: u64,
        pub(super) links: u64,
        pub(super) mode: u32,
        _owners: [u32; 3],
        _special: u64,
        pub(super) size: i64,
        _blocks: [u64; 2],
        pub(super) times: [crate::Time; 3],
    }

    /// The registers in the handler's third argument.
    #[repr(C)]
    pub(super) struct Context {
        _before: [u64; 5],
        /// r8 to r15, rdi, rsi, rbp, rbx, rdx, rax.
        registers: [usize; 14],
    }

    impl Context {
        pub(super) fn arguments(&self) -> [usize; 5] {
            let [r8, _, r10, _, _, _, _, _, rdi, rsi, _, _, rdx, _] = self.registers;
            [rdi, rsi, rdx, r10, r8]
        }

        pub(super) fn answer(&mut self, result: isize) {
            self.registers[13] = result.cast_unsigned();
        }
    }

    core::arch::global_asm!(
        ".hidden toolgate_call",
        ".globl toolgate_call",
        "toolgate_call:",
        "mov rax, rdi",
        "mov rdi, rsi",
        "mov rsi, rdx",
        "mov rdx, rcx",
        "mov r10, r8",
        "mov r8, r9",
        "xor r9d, r9d",
        "syscall",
        ".hidden toolgate_called",
        ".globl toolgate_called",
        "toolgate_called:",
        "ret",
    );
}

#[cfg(target_arch = "aarch64")]
mod machine {
    /// `AUDIT_ARCH_AARCH64`.
    pub(super) const ARCHITECTURE: u32 = 0xc000_00b7;
    pub(super) const LSEEK: usize = 62;
    pub(super) const MMAP: usize = 222;
    pub(super) const MUNMAP: usize = 215;
    pub(super) const NEWFSTATAT: usize = 79;
    pub(super) const STATX: usize = 291;
    pub(super) const GETDENTS64: usize = 61;
    /// The other is `fstat`.
    pub(super) const TRAPPED: [usize; 4] = [NEWFSTATAT, STATX, GETDENTS64, 80];

    /// `stat`.
    #[repr(C)]
    pub(super) struct Stat {
        pub(super) device: u64,
        pub(super) number: u64,
        pub(super) mode: u32,
        pub(super) links: u32,
        _owners: [u32; 2],
        _special: [u64; 2],
        pub(super) size: i64,
        _blocks: [u64; 2],
        pub(super) times: [crate::Time; 3],
    }

    /// The registers in the handler's third argument.
    #[repr(C)]
    pub(super) struct Context {
        _before: [u64; 23],
        registers: [usize; 5],
    }

    impl Context {
        pub(super) fn arguments(&self) -> [usize; 5] {
            self.registers
        }

        pub(super) fn answer(&mut self, result: isize) {
            self.registers[0] = result.cast_unsigned();
        }
    }

    core::arch::global_asm!(
        ".hidden toolgate_call",
        ".globl toolgate_call",
        "toolgate_call:",
        "mov x8, x0",
        "mov x0, x1",
        "mov x1, x2",
        "mov x2, x3",
        "mov x3, x4",
        "mov x4, x5",
        "mov x5, xzr",
        "svc #0",
        ".hidden toolgate_called",
        ".globl toolgate_called",
        "toolgate_called:",
        "ret",
    );
}

use machine::*;

/// `statx`.
#[repr(C)]
struct Statx {
    _flags: [u64; 2],
    links: u32,
    _owners: [u32; 2],
    mode: u16,
    number: u64,
    size: u64,
    _blocks: [u64; 2],
    times: [Time; 4],
    _special: [u32; 2],
    device: [u32; 2],
    mount: u64,
}

/// `statx_timestamp`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Time {
    seconds: i64,
    part: u64,
}

/// `siginfo_t` of SIGSYS.
#[repr(C)]
struct Signal {
    _signal: [u32; 6],
    number: c_int,
}

/// `sigaction` of the C library.
#[repr(C)]
struct Action {
    handler: unsafe extern "C" fn(c_int, *const Signal, *mut Context),
    mask: [u64; 16],
    flags: c_int,
    restorer: *const c_void,
}

/// `sock_filter`, an instruction of a filter.
#[derive(Clone, Copy)]
#[repr(C)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

/// `sock_fprog`.
#[repr(C)]
struct Program {
    length: u16,
    instructions: *const Instruction,
}

unsafe extern "C" {
    /// Calls the kernel from the one place that the filter allows. The sixth argument is 0.
    fn toolgate_call(number: usize, a: usize, b: usize, c: usize, d: usize, e: usize) -> isize;
    /// The address after its instruction.
    static toolgate_called: u8;
    fn sigaction(signal: c_int, action: *const Action, old: *mut Action) -> c_int;
    fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int;
}

const SIGSYS: c_int = 31;
const SA_SIGINFO: c_int = 4;
const PR_SET_NO_NEW_PRIVS: c_int = 38;
const PR_SET_SECCOMP: c_int = 22;
const SECCOMP_MODE_FILTER: usize = 2;
const SECCOMP_RET_TRAP: u32 = 0x0003_0000;
const SECCOMP_RET_ALLOW: u32 = 0x7fff_0000;
const AT_FDCWD: usize = (-100_isize).cast_unsigned();
const EMFILE: isize = 24;
const EINVAL: isize = 22;
const ENOMEM: isize = 12;

/// The device of `/proc`. Libraries recognise its files by their numbers.
static PROC: AtomicU64 = AtomicU64::new(0);

/// Fixes the files of this process. It must have one thread, and cannot start other programs or load libraries afterwards. Returns
/// 0, or another number if the kernel has no such filters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn toolgate_fix_files() -> c_int {
    let mut proc = MaybeUninit::<Stat>::zeroed();
    // SAFETY: the call reads the path and writes to `proc`. Zeros are a `Stat` too.
    let proc = unsafe {
        toolgate_call(NEWFSTATAT, AT_FDCWD, c"/proc".as_ptr().addr(), proc.as_mut_ptr().addr(), 0, 0);
        proc.assume_init()
    };
    PROC.store(proc.device, Ordering::Relaxed);
    let action = Action { handler: trapped, mask: [0; 16], flags: SA_SIGINFO, restorer: null() };
    // SAFETY: `action` is complete, and the handler has the signature that SA_SIGINFO asks for.
    let caught = unsafe { sigaction(SIGSYS, &action, null_mut()) };
    if caught != 0 {
        return caught;
    }
    let filter = filter();
    let program = Program { length: filter.len() as u16, instructions: filter.as_ptr() };
    // SAFETY: the kernel copies the program.
    unsafe {
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            | prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, (&raw const program).addr(), 0, 0)
    }
}

const CALLS: usize = TRAPPED.len();

/// Traps the calls that describe files, except those from [`toolgate_call`].
fn filter() -> [Instruction; CALLS + 10] {
    const LOAD: u16 = 0x20;
    const IS: u16 = 0x15;
    const RETURN: u16 = 0x06;
    // The fields of `seccomp_data`.
    const NUMBER: u32 = 0;
    const MACHINE: u32 = 4;
    const ADDRESS: u32 = 8;
    let step = |code, if_true, if_false, value| Instruction { code, if_true, if_false, value };
    let address = (&raw const toolgate_called).addr() as u64;
    let mut filter = [step(RETURN, 0, 0, SECCOMP_RET_ALLOW); CALLS + 10];
    let [machine, is_known, number, rest @ ..] = &mut filter;
    *machine = step(LOAD, 0, 0, MACHINE);
    *is_known = step(IS, 0, CALLS as u8 + 1, ARCHITECTURE);
    *number = step(LOAD, 0, 0, NUMBER);
    let mut left = CALLS as u8;
    for (instruction, number) in rest.iter_mut().zip(TRAPPED) {
        *instruction = step(IS, left, 0, number as u32);
        left -= 1;
    }
    // After them, all other calls are allowed. Then comes the address of the call.
    let [.., low, is_low, high, is_high, trap, _allowed] = rest;
    *low = step(LOAD, 0, 0, ADDRESS);
    *is_low = step(IS, 0, 2, address as u32);
    *high = step(LOAD, 0, 0, ADDRESS + 4);
    *is_high = step(IS, 1, 0, (address >> 32) as u32);
    *trap = step(RETURN, 0, 0, SECCOMP_RET_TRAP);
    filter
}

unsafe extern "C" fn trapped(_signal: c_int, signal: *const Signal, context: *mut Context) {
    // SAFETY: the kernel passes both.
    let (signal, context) = unsafe { (&*signal, &mut *context) };
    let [a, b, c, d, e] = context.arguments();
    let number = signal.number as usize;
    // SAFETY: these are the arguments of the program's call. A call that succeeds has filled its buffer.
    let result = unsafe {
        if number == GETDENTS64 {
            entries(a, b as *mut u8, c)
        } else {
            let result = toolgate_call(number, a, b, c, d, e);
            match number {
                _ if result != 0 => {}
                STATX => fix_statx(&mut *(e as *mut Statx)),
                NEWFSTATAT => fix_stat(&mut *(c as *mut Stat)),
                _ => fix_stat(&mut *(b as *mut Stat)),
            }
            result
        }
    };
    context.answer(result);
}

/// The times, numbers and sizes that differ between two machines, or between two copies of a file.
fn fix_stat(stat: &mut Stat) {
    if stat.device == PROC.load(Ordering::Relaxed) {
        return;
    }
    (stat.device, stat.number, stat.links) = (1, 1, 1);
    stat.times = [super::Time { seconds: TIME, part: 0 }; 3];
    if is_folder(stat.mode) {
        stat.size = 0;
    }
}

fn fix_statx(stat: &mut Statx) {
    let [major, minor] = stat.device.map(u64::from);
    if minor & 0xff | major << 8 | (minor & !0xff) << 12 == PROC.load(Ordering::Relaxed) {
        return;
    }
    (stat.device, stat.number, stat.links, stat.mount) = ([0, 1], 1, 1, 1);
    stat.times = [Time { seconds: TIME, part: 0 }; 4];
    if is_folder(stat.mode.into()) {
        stat.size = 0;
    }
}

fn is_folder(mode: u32) -> bool {
    mode & 0o170_000 == 0o040_000
}

/// The start of an entry of a folder. Its name follows, and ends with a zero.
#[repr(C, packed)]
struct Entry {
    number: u64,
    next: u64,
    length: u16,
    kind: u8,
    name: [u8; 0],
}

/// A folder's entries in memory, with this header before them.
#[repr(C)]
struct Listing {
    /// The number of bytes of the header and the entries.
    used: usize,
    /// The entry that the program got last; null before the first.
    last: *const Entry,
}

/// The listings of folders that are being read, by file descriptor. A program reads a folder with one thread.
static LISTINGS: [AtomicPtr<Listing>; 1024] = [const { AtomicPtr::new(null_mut()) }; 1024];

/// The address space of a listing. It costs memory only where it is used.
const LISTING: usize = 64 << 20;

/// `getdents64` with sorted names.
///
/// # Safety
/// `buffer` must have this length.
unsafe fn entries(folder: usize, buffer: *mut u8, length: usize) -> isize {
    let Some(kept) = LISTINGS.get(folder) else { return -EMFILE };
    const SEEK_CUR: usize = 1;
    // SAFETY: the call has no pointer.
    let place = unsafe { toolgate_call(LSEEK, folder, 0, SEEK_CUR, 0, 0) };
    if place < 0 {
        return place;
    }
    if place == 0 {
        // SAFETY: only this thread reads this folder.
        let failed = unsafe { read_all(folder, kept) };
        if failed < 0 {
            return failed;
        }
    }
    let listing = kept.load(Ordering::Acquire);
    if listing.is_null() {
        return 0;
    }
    let mut written = 0;
    // SAFETY: `read_all` made the listing, and `next` is in it. The buffer has room for each entry that is copied.
    unsafe {
        loop {
            let next = after(listing);
            if next.is_null() {
                break;
            }
            let size = usize::from((*next).length);
            if written + size > length {
                return if written == 0 { -EINVAL } else { written as isize };
            }
            let copy = buffer.add(written);
            copy.copy_from_nonoverlapping(next.cast(), size);
            (*copy.cast::<Entry>()).number = 1;
            (*copy.cast::<Entry>()).next = 1;
            written += size;
            (*listing).last = next;
        }
        if written == 0 {
            remove(kept);
        }
    }
    written as isize
}

/// Reads all entries of a folder that is at its start. The folder is at its end then.
unsafe fn read_all(folder: usize, kept: &AtomicPtr<Listing>) -> isize {
    const READ_WRITE: usize = 3;
    const PRIVATE_ANONYMOUS: usize = 0x4022;
    // SAFETY: the listing is of an earlier folder with this descriptor, which is closed.
    unsafe { remove(kept) };
    // SAFETY: the call makes memory of its own.
    let made = unsafe { toolgate_call(MMAP, 0, LISTING, READ_WRITE, PRIVATE_ANONYMOUS, usize::MAX) };
    if made < 0 {
        return made;
    }
    let listing = made as *mut Listing;
    kept.store(listing, Ordering::Release);
    let mut used = size_of::<Listing>();
    loop {
        // SAFETY: the memory has this length.
        let read = unsafe { toolgate_call(GETDENTS64, folder, made as usize + used, LISTING - used, 0, 0) };
        if read <= 0 {
            // SAFETY: it is memory of this function.
            unsafe { listing.write(Listing { used, last: null() }) };
            // Without room for an entry, the kernel answers EINVAL.
            return if read == -EINVAL { -ENOMEM } else { read };
        }
        used += read as usize;
    }
}

unsafe fn remove(kept: &AtomicPtr<Listing>) {
    let listing = kept.swap(null_mut(), Ordering::AcqRel);
    if !listing.is_null() {
        // SAFETY: `read_all` made it with this length.
        unsafe { toolgate_call(MUNMAP, listing.addr(), LISTING, 0, 0, 0) };
    }
}

/// The entry with the smallest name after that of the last one; null after the end.
unsafe fn after(listing: *const Listing) -> *const Entry {
    let (mut found, mut at) = (null::<Entry>(), size_of::<Listing>());
    // SAFETY: the kernel wrote complete entries, each with its length.
    unsafe {
        let last = (*listing).last;
        while at < (*listing).used {
            let entry = listing.byte_add(at).cast::<Entry>();
            at += usize::from((*entry).length);
            if (last.is_null() || is_before(last, entry)) && (found.is_null() || is_before(entry, found)) {
                found = entry;
            }
        }
    }
    found
}

/// Whether the name of one entry is smaller than that of another.
unsafe fn is_before(one: *const Entry, two: *const Entry) -> bool {
    // SAFETY: both names end with a zero.
    unsafe {
        let (mut one, mut two) = ((&raw const (*one).name).cast::<u8>(), (&raw const (*two).name).cast::<u8>());
        while *one == *two && *one != 0 {
            (one, two) = (one.add(1), two.add(1));
        }
        *one < *two
    }
}
