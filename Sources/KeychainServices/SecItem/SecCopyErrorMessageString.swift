// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation
import SecItem

/// What a status means, as a sentence.
///
/// - Parameters:
///   - status: What a call gave back.
///   - reserved: `nil`, as on Apple's systems.
/// - Returns: A sentence with the number where the status is none of the keychain's.
public func SecCopyErrorMessageString(_ status: OSStatus, _ reserved: UnsafeMutableRawPointer?) -> CFString? {
  let sentence = SecItemStatus(rawValue: status)?.sentence ?? "The status \(status) is none of the keychain's."
  return NSString(string: sentence)
}
