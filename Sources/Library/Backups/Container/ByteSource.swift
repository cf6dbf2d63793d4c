package import Basics

/// A source of bytes for a libarchive reader.
package protocol ByteSource: AnyObject {
  /// Returns the next bytes, which are valid until the next call, or an empty buffer at the end.
  func next() throws(KeyhaulError) -> UnsafeRawBufferPointer
  /// Skips up to `count` bytes if that is cheaper than reading them. Returns the number of skipped bytes.
  func skip(_ count: Int64) throws(KeyhaulError) -> Int64
  /// Moves to an offset and returns it, or `nil` if the source cannot seek.
  func seek(_ offset: Int64, _ origin: SeekOrigin) throws(KeyhaulError) -> Int64?
  /// Whether `next` has reached the end.
  var hasEnded: Bool { get }
}

package enum SeekOrigin {
  case start, current, end
}
