//! How much smaller compressed columns can be than what they hold: files that say more than that are damaged, or meant to do harm.

use everytree_core::memory;
use std::io::{self, Read};

/// Writers make pieces of about 1 MB, some of many rows at once. Only beyond this is it asked how well a piece was packed …
const LARGE: u64 = 256 << 20;
/// … and no large piece of a table is packed as well as this.
const RATIO: u64 = 1000;
/// What a byte of LZ4 can stand for at most.
const LZ4_RATIO: u64 = 255;

/// Can this many bytes be so many when they are unpacked? Says what is wrong otherwise.
pub(super) fn check_ratio(packed: u64, unpacked: u64) -> Result<(), String> {
    if unpacked > LARGE && unpacked / packed.max(1) >= RATIO {
        let unpacked = memory::in_words(unpacked);
        return Err(format!(
            "{packed} bytes that say to be {unpacked} when unpacked; if they are, write fewer rows at once"
        ));
    }
    Ok(())
}

/// Is a frame of LZ4 no longer than said? Its reader goes on to the end of the frame, however long that is, so frames that could be
/// large are unpacked once to nowhere.
pub(super) fn is_lz4_of(frame: &mut impl Read, packed: u64, said: u64) -> io::Result<bool> {
    if packed.saturating_mul(LZ4_RATIO) <= LARGE.max(said) {
        return Ok(true);
    }
    let mut unpacked = lz4_flex::frame::FrameDecoder::new(frame).take(said.saturating_add(1));
    Ok(io::copy(&mut unpacked, &mut io::sink())? <= said)
}
