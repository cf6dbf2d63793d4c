import Basics

/// Reads the DER of an item in the form that devices write, without creating values.
///
/// Any other form is read by `DERDecoder`, which reports errors.
struct CanonicalDERReader {
  /// A tag and the contents in place.
  struct Element {
    let tag: UInt8
    let contents: UnsafeRawBufferPointer
  }

  private(set) var remainingBytes: UnsafeRawBufferPointer

  init(_ bytes: UnsafeRawBufferPointer) { remainingBytes = bytes }

  /// Reads the next element.
  ///
  /// - Returns: The element, or `nil` if it is missing or incomplete, or if its length takes more than two bytes or is
  ///   not in its shortest form.
  mutating func next() -> Element? {
    guard let (start, count) = nextContents(), count <= remainingBytes.count - start else { return nil }
    let end = start + count
    let element = Element(
      tag: remainingBytes[0], contents: UnsafeRawBufferPointer(rebasing: remainingBytes[start..<end]))
    remainingBytes = UnsafeRawBufferPointer(rebasing: remainingBytes[end...])
    return element
  }

  /// Returns the offset and the length of the next element's contents, or `nil` if the length is not supported.
  private func nextContents() -> (start: Int, count: Int)? {
    guard remainingBytes.count >= 2 else { return nil }
    let firstByte = Int(remainingBytes[1])
    guard firstByte >= 0x80 else { return (2, firstByte) }
    let digitCount = firstByte - 0x80
    guard (1...2).contains(digitCount), remainingBytes.count >= 2 + digitCount else { return nil }
    let count = digitCount == 1 ? Int(remainingBytes[2]) : Int(remainingBytes[2]) << 8 | Int(remainingBytes[3])
    // A smaller length has a shorter form.
    guard count >= (digitCount == 1 ? 0x80 : 0x100) else { return nil }
    return (2 + digitCount, count)
  }

  /// Reads a SEQUENCE of a string and another element, or returns `nil` if the next element is not such a SEQUENCE.
  mutating func nextPair() -> (key: UnsafeRawBufferPointer, value: Element)? {
    guard let pair = next(), pair.tag == DERPropertyList.Tag.sequence else { return nil }
    var parts = CanonicalDERReader(pair.contents)
    guard let key = parts.next(), key.tag == DERPropertyList.Tag.string, let value = parts.next(),
      parts.remainingBytes.isEmpty
    else { return nil }
    return (key.contents, value)
  }
}
