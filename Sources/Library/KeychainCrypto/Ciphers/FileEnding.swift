import Basics
import KeychainFormats

/// The end of a stored file, which alone says whether it is padded: a block decrypts with the one before it, whatever comes
/// before that.
package struct FileEnding: ~Copyable {
  private static let keptByteCount = 2 * FileCipher.blockSize
  private let decryptor: FileDecryptor
  private var end: [UInt8] = []
  private var byteCount: Int64 = 0

  /// Nothing was read yet of a file with this key.
  package init(of decryptor: FileDecryptor) {
    self.decryptor = decryptor
    end.reserveCapacity(2 * Self.keptByteCount)
  }

  /// Takes the next stored bytes, of any number.
  package mutating func pass(_ bytes: UnsafeRawBufferPointer) {
    byteCount += Int64(bytes.count)
    end.append(contentsOf: bytes.suffix(Self.keptByteCount))
    if end.count > Self.keptByteCount { end.removeFirst(end.count - Self.keptByteCount) }
  }

  /// What decrypting all of it would have said: how many plain bytes there are, without their padding where it is valid, and
  /// whether it is.
  package func finish() throws(DataProtectionError) -> (plainByteCount: Int64, hasValidPadding: Bool) {
    let block = Int64(FileCipher.blockSize)
    guard byteCount > 0, byteCount % block == 0 else { return (byteCount / block * block, false) }
    let plain = try end.withRawBytes { (end) throws(DataProtectionError) in try decryptor.plain(of: end).count }
    let last = try decryptor.finish()
    return (byteCount - Int64(end.count - plain - last.bytes.count), last.hasValidPadding)
  }
}
