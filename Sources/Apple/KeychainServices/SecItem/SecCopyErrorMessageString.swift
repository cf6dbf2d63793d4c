// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation
import VirtualDevice

/// What a status means, as a sentence.
///
/// - Parameters:
///   - status: What a call gave back.
///   - reserved: `nil`, as on Apple's systems.
/// - Returns: This project's sentence for each status of Apple's `SecBase.h`; the number where it is none of them.
public func SecCopyErrorMessageString(_ status: OSStatus, _ reserved: UnsafeMutableRawPointer?) -> CFString? {
  let sentence = SecItemStatus(rawValue: status)?.sentence ?? StatusSentences.sentence(of: status)
  return NSString(string: sentence ?? "The status \(status) is not a keychain status.")
}
