//! The file system as SQLite calls it. All `unsafe` of the project is here: each function turns SQLite's pointers into
//! references once, asks the disk, and calls the real file system.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::ptr;
use std::slice;
use std::sync::{Arc, OnceLock};

use rusqlite::ffi;

use crate::fault::{Op, Part, What};
use crate::state::{Shared, Written, disk_of};

/// What to open a database with.
pub const NAME: &str = "baton-faulty-disk";
const C_NAME: &CStr = c"baton-faulty-disk";

/// SQLite's own file system, found once.
static REAL: OnceLock<Real> = OnceLock::new();

struct Real(*mut ffi::sqlite3_vfs);

// SAFETY: SQLite's file systems live as long as the process and are called from any thread; the pointer is only read.
unsafe impl Send for Real {}
// SAFETY: as above.
unsafe impl Sync for Real {}

/// An open file. The real one lies behind it: SQLite gives room for both, because `szOsFile` says so.
#[repr(C)]
struct File {
    base: ffi::sqlite3_file,
    /// From `Box::into_raw`; null before it is opened and after it is closed.
    opened: *mut Opened,
}

/// What we know of an open file.
struct Opened {
    path: PathBuf,
    part: Part,
    /// Absent for what lies in no folder with a disk.
    disk: Option<Arc<Shared>>,
}

/// The real file behind ours.
fn real(file: *mut ffi::sqlite3_file) -> *mut ffi::sqlite3_file {
    file.cast::<u8>().wrapping_add(size_of::<File>()).cast()
}

/// # Safety
/// `file` is one that `open` has opened and `close` has not closed.
unsafe fn opened<'a>(file: *mut ffi::sqlite3_file) -> &'a Opened {
    // SAFETY: SQLite hands back the memory that `open` filled in.
    let opened = unsafe { (*file.cast::<File>()).opened };
    // SAFETY: it came from a box that only `close` takes back, and SQLite calls nothing for a file while it closes it.
    unsafe { &*opened }
}

/// # Safety
/// As for [`opened`].
unsafe fn methods<'a>(file: *mut ffi::sqlite3_file) -> &'a ffi::sqlite3_io_methods {
    // SAFETY: the real file system has opened it, so it has methods.
    let methods = unsafe { (*real(file)).pMethods };
    // SAFETY: they are constants of the real file system.
    unsafe { &*methods }
}

/// Calls a method of the real file, or says that there is none.
macro_rules! pass_on {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        // SAFETY: whoever uses this was called by SQLite for an open file.
        let methods = unsafe { methods($file) };
        match methods.$method {
            // SAFETY: the arguments are SQLite's, for the file that lies behind ours.
            Some(method) => unsafe { method(real($file) $(, $argument)*) },
            None => ffi::SQLITE_NOTFOUND,
        }
    }};
}

macro_rules! passed_on {
    ($($name:ident => $method:ident($($argument:ident: $type:ty),*);)*) => {
        $(
            unsafe extern "C" fn $name(file: *mut ffi::sqlite3_file $(, $argument: $type)*) -> c_int {
                pass_on!(file, $method $(, $argument)*)
            }
        )*
    };
}

passed_on! {
    file_size => xFileSize(size: *mut ffi::sqlite3_int64);
    lock => xLock(level: c_int);
    unlock => xUnlock(level: c_int);
    check_reserved_lock => xCheckReservedLock(held: *mut c_int);
    file_control => xFileControl(op: c_int, argument: *mut c_void);
    sector_size => xSectorSize();
    device_characteristics => xDeviceCharacteristics();
    shm_map => xShmMap(page: c_int, size: c_int, extend: c_int, place: *mut *mut c_void);
    shm_lock => xShmLock(offset: c_int, count: c_int, flags: c_int);
    shm_unmap => xShmUnmap(delete: c_int);
}

unsafe extern "C" fn shm_barrier(file: *mut ffi::sqlite3_file) {
    // SAFETY: SQLite calls this for an open file.
    let methods = unsafe { methods(file) };
    if let Some(barrier) = methods.xShmBarrier {
        // SAFETY: the file behind ours is open.
        unsafe { barrier(real(file)) };
    }
}

unsafe extern "C" fn close(file: *mut ffi::sqlite3_file) -> c_int {
    let code = pass_on!(file, xClose);
    // SAFETY: the memory is ours until this returns.
    let ours = unsafe { &mut *file.cast::<File>() };
    let opened = std::mem::replace(&mut ours.opened, ptr::null_mut());
    if !opened.is_null() {
        // SAFETY: it came from `Box::into_raw` in `open`, and is taken back once.
        drop(unsafe { Box::from_raw(opened) });
    }
    code
}

unsafe extern "C" fn read(
    file: *mut ffi::sqlite3_file,
    buffer: *mut c_void,
    count: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite reads open files only.
    let ours = unsafe { opened(file) };
    let Some(disk) = &ours.disk else { return pass_on!(file, xRead, buffer, count, at) };
    disk.wait(Op::Read, ours.part);
    match disk.fault(Op::Read, ours.part) {
        Some(What::Flip) => {
            let code = pass_on!(file, xRead, buffer, count, at);
            // SAFETY: SQLite gives room for `count` bytes, and the real file system has filled it.
            let bytes = unsafe { slice::from_raw_parts_mut(buffer.cast::<u8>(), count.max(0) as usize) };
            disk.flip(bytes);
            code
        }
        Some(_) => ffi::SQLITE_IOERR_READ,
        None => pass_on!(file, xRead, buffer, count, at),
    }
}

unsafe extern "C" fn write(
    file: *mut ffi::sqlite3_file,
    buffer: *const c_void,
    count: c_int,
    at: ffi::sqlite3_int64,
) -> c_int {
    // SAFETY: SQLite writes open files only.
    let ours = unsafe { opened(file) };
    let Some(disk) = &ours.disk else { return pass_on!(file, xWrite, buffer, count, at) };
    disk.wait(Op::Write, ours.part);
    // SAFETY: SQLite hands over `count` bytes, which nobody changes meanwhile.
    let bytes = unsafe { slice::from_raw_parts(buffer.cast::<u8>(), count.max(0) as usize) };
    let place = usize::try_from(at).unwrap_or(0);
    let written = disk.write(&ours.path, ours.part, place, bytes, |count| {
        match pass_on!(file, xWrite, buffer, count as c_int, at) {
            ffi::SQLITE_OK => Ok(()),
            code => Err(code),
        }
    });
    match written {
        Ok(Written::All) => ffi::SQLITE_OK,
        Ok(Written::Part(_, What::Full)) => ffi::SQLITE_FULL,
        Ok(Written::Part(..)) => ffi::SQLITE_IOERR_WRITE,
        Err(code) => code,
    }
}

unsafe extern "C" fn truncate(file: *mut ffi::sqlite3_file, length: ffi::sqlite3_int64) -> c_int {
    // SAFETY: SQLite cuts open files only.
    let ours = unsafe { opened(file) };
    let Some(disk) = &ours.disk else { return pass_on!(file, xTruncate, length) };
    disk.wait(Op::Truncate, ours.part);
    if disk.fault(Op::Truncate, ours.part).is_some() {
        return ffi::SQLITE_IOERR_TRUNCATE;
    }
    let code = pass_on!(file, xTruncate, length);
    if code == ffi::SQLITE_OK {
        disk.truncated(&ours.path, usize::try_from(length).unwrap_or(0));
    }
    code
}

/// The real disk is not troubled: the image knows what would be on it.
unsafe extern "C" fn sync(file: *mut ffi::sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite syncs open files only.
    let ours = unsafe { opened(file) };
    let Some(disk) = &ours.disk else { return pass_on!(file, xSync, flags) };
    disk.wait(Op::Sync, ours.part);
    if disk.sync(&ours.path, ours.part) { ffi::SQLITE_OK } else { ffi::SQLITE_IOERR_FSYNC }
}

/// Version 2: shared memory, but no files in memory, which would get around us.
static METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: None,
    xUnfetch: None,
};

/// # Safety
/// `name` is null or ends with a zero, as SQLite's names do.
unsafe fn path(name: *const c_char) -> Option<PathBuf> {
    if name.is_null() {
        return None;
    }
    // SAFETY: as promised.
    let name = unsafe { CStr::from_ptr(name) };
    Some(Path::new(OsStr::from_bytes(name.to_bytes())).to_owned())
}

unsafe extern "C" fn open(
    _: *mut ffi::sqlite3_vfs,
    name: ffi::sqlite3_filename,
    file: *mut ffi::sqlite3_file,
    flags: c_int,
    told: *mut c_int,
) -> c_int {
    // SAFETY: SQLite gives `szOsFile` bytes for it.
    let ours = unsafe { &mut *file.cast::<File>() };
    ours.base.pMethods = ptr::null();
    ours.opened = ptr::null_mut();
    // SAFETY: the name is SQLite's.
    let path = unsafe { path(name) };
    let part = match flags {
        flags if flags & ffi::SQLITE_OPEN_MAIN_DB != 0 => Part::Database,
        flags if flags & ffi::SQLITE_OPEN_WAL != 0 => Part::Wal,
        _ => Part::Other,
    };
    let disk = path.as_deref().and_then(disk_of);
    if disk.as_ref().is_some_and(|disk| disk.fault(Op::Open, part).is_some()) {
        return ffi::SQLITE_CANTOPEN;
    }
    let Some(vfs) = REAL.get() else { return ffi::SQLITE_CANTOPEN };
    // SAFETY: `register` found it, and it is never taken away.
    let Some(open) = (unsafe { (*vfs.0).xOpen }) else { return ffi::SQLITE_CANTOPEN };
    // SAFETY: behind ours there is room for the real file.
    let code = unsafe { open(vfs.0, name, real(file), flags, told) };
    if code != ffi::SQLITE_OK {
        return code;
    }
    let path = path.unwrap_or_default();
    let disk = disk.filter(|disk| disk.opened(&path).is_ok());
    ours.opened = Box::into_raw(Box::new(Opened { path, part, disk }));
    ours.base.pMethods = &raw const METHODS;
    ffi::SQLITE_OK
}

unsafe extern "C" fn delete(_: *mut ffi::sqlite3_vfs, name: *const c_char, sync: c_int) -> c_int {
    let Some(vfs) = REAL.get() else { return ffi::SQLITE_IOERR_DELETE };
    // SAFETY: `register` found it, and it is never taken away.
    let Some(delete) = (unsafe { (*vfs.0).xDelete }) else { return ffi::SQLITE_IOERR_DELETE };
    // SAFETY: the name is SQLite's.
    let code = unsafe { delete(vfs.0, name, sync) };
    // SAFETY: as above.
    let path = unsafe { path(name) };
    if let Some((disk, path)) = path.and_then(|path| Some((disk_of(&path)?, path))) {
        disk.deleted(&path);
    }
    code
}

/// Makes the file system known to SQLite, once.
pub(crate) fn register() {
    REAL.get_or_init(|| {
        // SAFETY: null asks for the default one. It initialises SQLite if nobody has.
        let real = unsafe { ffi::sqlite3_vfs_find(ptr::null()) };
        assert!(!real.is_null(), "SQLite has no file system");
        // SAFETY: it is there, and nobody changes it. What is not ours in the copy is the real one's: its functions for
        // names, time and chance look at nothing that differs here.
        let mut vfs = unsafe { *real };
        vfs.szOsFile += size_of::<File>() as c_int;
        vfs.zName = C_NAME.as_ptr();
        vfs.pNext = ptr::null_mut();
        vfs.xOpen = Some(open);
        vfs.xDelete = Some(delete);
        // SAFETY: it is never freed, so SQLite may keep it.
        let code = unsafe { ffi::sqlite3_vfs_register(Box::leak(Box::new(vfs)), 0) };
        assert_eq!(code, ffi::SQLITE_OK, "the file system was not taken");
        Real(real)
    });
}
