// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation

// Core Foundation's names for the types of Foundation on Linux. `query as CFDictionary`, `var result: CFTypeRef?` and
// `result as? Data` then have the same meaning as on Apple's systems.

/// Any object, such as the result of a keychain call.
public typealias CFTypeRef = AnyObject
/// Foundation's `NSString`.
public typealias CFString = NSString
/// Foundation's `NSMutableString`.
public typealias CFMutableString = NSMutableString
/// Foundation's `NSData`.
public typealias CFData = NSData
/// Foundation's `NSMutableData`.
public typealias CFMutableData = NSMutableData
/// Foundation's `NSNumber`.
public typealias CFNumber = NSNumber
/// Foundation's `NSNumber`. The booleans are the two objects `kCFBooleanTrue` and `kCFBooleanFalse`.
public typealias CFBoolean = NSNumber
/// Foundation's `NSDate`.
public typealias CFDate = NSDate
/// Foundation's `NSArray`.
public typealias CFArray = NSArray
/// Foundation's `NSMutableArray`.
public typealias CFMutableArray = NSMutableArray
/// Foundation's `NSDictionary`, the type of keychain queries.
public typealias CFDictionary = NSDictionary
/// Foundation's `NSMutableDictionary`.
public typealias CFMutableDictionary = NSMutableDictionary
/// Foundation's `NSSet`.
public typealias CFSet = NSSet
/// Foundation's `NSMutableSet`.
public typealias CFMutableSet = NSMutableSet
/// Foundation's `NSError`.
public typealias CFError = NSError
/// The domain of an error's code.
public typealias CFErrorDomain = CFString
/// Foundation's `NSNull`.
public typealias CFNull = NSNull
/// Foundation's `NSURL`.
public typealias CFURL = NSURL
/// A count or an index.
public typealias CFIndex = Int
/// A set of bits.
public typealias CFOptionFlags = UInt
/// The identifier of a type, as `CFGetTypeID` returns it.
public typealias CFTypeID = UInt
/// A length of time in seconds.
public typealias CFTimeInterval = Double
/// Seconds since 2001-01-01T00:00:00Z.
public typealias CFAbsoluteTime = Double

/// Four characters as a number, the first in the highest byte.
public typealias FourCharCode = UInt32
/// A four-character code of a type.
public typealias OSType = FourCharCode
/// The result of a keychain call; 0 is success.
public typealias OSStatus = Int32

/// The object for true.
public let kCFBooleanTrue: CFBoolean! = NSNumber(value: true)
/// The object for false.
public let kCFBooleanFalse: CFBoolean! = NSNumber(value: false)
/// The object for no value.
public let kCFNull: CFNull! = NSNull()

/// A memory allocator of Core Foundation. Swift allocates all memory here, so only the default has an effect.
public final class CFAllocator: Sendable {
  fileprivate init() {}
}

/// The default allocator.
public let kCFAllocatorDefault: CFAllocator! = nil
/// The system's allocator.
public let kCFAllocatorSystemDefault: CFAllocator! = CFAllocator()
/// The allocator that allocates and frees nothing. The memory continues to belong to the caller.
public let kCFAllocatorNull: CFAllocator! = CFAllocator()

/// The key of the bundle identifier in a property list.
nonisolated(unsafe) public let kCFBundleIdentifierKey: CFString! = "CFBundleIdentifier"

/// The types that `CFGetTypeID` distinguishes, with this project's own identifiers.
enum CoreFoundationType: CFTypeID {
  case other = 0
  case string
  case data
  case number
  case boolean
  case date
  case array
  case dictionary
  case error
  case null
  case accessControl
  case certificate
  case key
  case identity
  case policy
  case trust
}

/// An object of the Security framework with a type identifier.
protocol SecurityObject: AnyObject {
  static var coreFoundationType: CoreFoundationType { get }
}

/// Returns the type identifier of an object. It can only be compared with other type identifiers.
public func CFGetTypeID(_ object: CFTypeRef) -> CFTypeID {
  let type: CoreFoundationType =
    switch object {
    case is NSString: .string
    case is NSData: .data
    case let number as NSNumber: number.isBoolean ? .boolean : .number
    case is NSDate: .date
    case is NSArray: .array
    case is NSDictionary: .dictionary
    case is NSError: .error
    case is NSNull: .null
    case let object as any SecurityObject: type(of: object).coreFoundationType
    default: .other
    }
  return type.rawValue
}

/// Returns the type identifier of strings.
public func CFStringGetTypeID() -> CFTypeID { CoreFoundationType.string.rawValue }
/// Returns the type identifier of data.
public func CFDataGetTypeID() -> CFTypeID { CoreFoundationType.data.rawValue }
/// Returns the type identifier of numbers, except booleans.
public func CFNumberGetTypeID() -> CFTypeID { CoreFoundationType.number.rawValue }
/// Returns the type identifier of booleans.
public func CFBooleanGetTypeID() -> CFTypeID { CoreFoundationType.boolean.rawValue }
/// Returns the type identifier of dates.
public func CFDateGetTypeID() -> CFTypeID { CoreFoundationType.date.rawValue }
/// Returns the type identifier of arrays.
public func CFArrayGetTypeID() -> CFTypeID { CoreFoundationType.array.rawValue }
/// Returns the type identifier of dictionaries.
public func CFDictionaryGetTypeID() -> CFTypeID { CoreFoundationType.dictionary.rawValue }

/// Returns the code of an error. For a keychain call, it is the status.
public func CFErrorGetCode(_ error: CFError) -> CFIndex { error.code }
/// Returns the domain of an error.
public func CFErrorGetDomain(_ error: CFError) -> CFErrorDomain! { NSString(string: error.domain) }
/// Returns a description of an error for users.
public func CFErrorCopyDescription(_ error: CFError) -> CFString { NSString(string: error.localizedDescription) }
/// Returns the user information of an error.
public func CFErrorCopyUserInfo(_ error: CFError) -> CFDictionary { NSDictionary(dictionary: error.userInfo) }

/// Creates data from a copy of bytes.
///
/// - Parameters:
///   - allocator: Not used.
///   - bytes: The bytes to copy; may be `nil` if `length` is 0.
///   - length: The number of bytes.
/// - Returns: The data; `nil` if the length is negative, or if `bytes` is `nil` and `length` is not 0.
public func CFDataCreate(_ allocator: CFAllocator?, _ bytes: UnsafePointer<UInt8>?, _ length: CFIndex) -> CFData! {
  guard length > 0, let bytes else { return length == 0 ? NSData() : nil }
  return NSData(bytes: bytes, length: length)
}

/// Creates data from bytes without copying them.
///
/// - Parameters:
///   - allocator: Not used.
///   - bytes: The bytes, which must stay valid as long as the data.
///   - length: The number of bytes.
///   - deallocator: `kCFAllocatorNull` if the caller frees the bytes. With any other value, the data frees them. They
///     must then come from `malloc`.
/// - Returns: The data; `nil` if the length is negative, or if `bytes` is `nil` and `length` is not 0.
public func CFDataCreateWithBytesNoCopy(
  _ allocator: CFAllocator?, _ bytes: UnsafePointer<UInt8>?, _ length: CFIndex, _ deallocator: CFAllocator?
) -> CFData! {
  guard length >= 0, let bytes else { return length == 0 ? NSData() : nil }
  return NSData(
    bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes), length: length,
    freeWhenDone: deallocator !== kCFAllocatorNull)
}

/// Returns a pointer to the bytes of data, valid as long as the data.
public func CFDataGetBytePtr(_ data: CFData) -> UnsafePointer<UInt8>! {
  data.bytes.assumingMemoryBound(to: UInt8.self)
}

/// Returns the number of bytes in data.
public func CFDataGetLength(_ data: CFData) -> CFIndex { data.length }
/// Returns the number of elements in an array.
public func CFArrayGetCount(_ array: CFArray) -> CFIndex { array.count }
/// Returns the number of entries in a dictionary.
public func CFDictionaryGetCount(_ dictionary: CFDictionary) -> CFIndex { dictionary.count }
/// Returns the number of members of a set.
public func CFSetGetCount(_ set: CFSet) -> CFIndex { set.count }

/// Makes Foundation's and Swift's strings equal as dictionary keys, as on Apple's systems.
// swift-format-ignore: AvoidRetroactiveConformances
extension NSString: @retroactive _HasCustomAnyHashableRepresentation {
  public func _toCustomAnyHashable() -> AnyHashable? { AnyHashable(String(describing: self)) }
}

extension NSNumber {
  /// Whether the number is one of the two booleans, which are distinct from 0 and 1.
  var isBoolean: Bool { self === kCFBooleanTrue || self === kCFBooleanFalse }
}
