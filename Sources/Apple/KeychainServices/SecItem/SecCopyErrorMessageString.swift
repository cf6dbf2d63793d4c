// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import VirtualDevice

/// Returns the meaning of a status as a sentence.
///
/// - Parameters:
///   - status: The result of a call.
///   - reserved: `nil`, as on Apple's systems.
/// - Returns: This project's sentence for each status of Apple's `SecBase.h`, or a sentence with the number.
public func SecCopyErrorMessageString(_ status: OSStatus, _ reserved: UnsafeMutableRawPointer?) -> CFString? {
  let sentence = SecItemStatus(rawValue: status)?.sentence ?? StatusMessages.message(for: status)
  return NSString(string: sentence ?? "The status \(status) is not a keychain status.")
}
