// swift-format-ignore-file: AlwaysUseLowerCamelCase

import Basics
public import Foundation

// Core Foundation's names for what Foundation on Linux is made of, so that `query as CFDictionary`, `var result: CFTypeRef?`
// and `result as? Data` mean there what they mean on Apple's systems.

/// Any object; what a keychain call gives back.
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
/// Foundation's `NSNumber`; the booleans are the two objects `kCFBooleanTrue` and `kCFBooleanFalse`.
public typealias CFBoolean = NSNumber
/// Foundation's `NSDate`.
public typealias CFDate = NSDate
/// Foundation's `NSArray`.
public typealias CFArray = NSArray
/// Foundation's `NSMutableArray`.
public typealias CFMutableArray = NSMutableArray
/// Foundation's `NSDictionary`; keychain calls take their queries as one.
public typealias CFDictionary = NSDictionary
/// Foundation's `NSMutableDictionary`.
public typealias CFMutableDictionary = NSMutableDictionary
/// Foundation's `NSSet`.
public typealias CFSet = NSSet
/// Foundation's `NSMutableSet`.
public typealias CFMutableSet = NSMutableSet
/// Foundation's `NSError`.
public typealias CFError = NSError
/// The name of what an error's number counts in.
public typealias CFErrorDomain = CFString
/// Foundation's `NSNull`.
public typealias CFNull = NSNull
/// Foundation's `NSURL`.
public typealias CFURL = NSURL
/// A count or an index.
public typealias CFIndex = Int
/// A set of bits.
public typealias CFOptionFlags = UInt
/// The number of a kind of object, as `CFGetTypeID` gives it.
public typealias CFTypeID = UInt
/// A length of time in seconds.
public typealias CFTimeInterval = Double
/// Seconds since 2001-01-01T00:00:00Z.
public typealias CFAbsoluteTime = Double

/// Four characters as one number, the first in its highest byte.
public typealias FourCharCode = UInt32
/// Four characters that name a type.
public typealias OSType = FourCharCode
/// The result of a keychain call; 0 is success.
public typealias OSStatus = Int32

/// The one object for true.
public let kCFBooleanTrue: CFBoolean! = NSNumber(value: true)
/// The one object for false.
public let kCFBooleanFalse: CFBoolean! = NSNumber(value: false)
/// The one object for no value.
public let kCFNull: CFNull! = NSNull()

/// Where Core Foundation takes memory from: here always from Swift, so that it is only ever the default.
public final class CFAllocator: Sendable {
  fileprivate init() {}
}

/// The allocator that holds where none is given.
public let kCFAllocatorDefault: CFAllocator! = nil
/// The allocator of the system, which is Swift's here.
public let kCFAllocatorSystemDefault: CFAllocator! = CFAllocator()
/// The allocator that gives nothing and frees nothing: what it is named for stays with the caller.
public let kCFAllocatorNull: CFAllocator! = CFAllocator()

/// The key of a bundle's identifier in its property list.
nonisolated(unsafe) public let kCFBundleIdentifierKey: CFString! = "CFBundleIdentifier"

/// What `CFGetTypeID` tells apart: here the numbers are our own.
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

/// An object of the Security framework that Core Foundation's functions tell apart by its kind.
protocol SecurityObject: AnyObject {
  static var coreFoundationType: CoreFoundationType { get }
}

/// Which kind of object a reference is to. The numbers are only good for comparing.
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

/// Returns the number that `CFGetTypeID` gives for text.
public func CFStringGetTypeID() -> CFTypeID { CoreFoundationType.string.rawValue }
/// Returns the number that `CFGetTypeID` gives for data.
public func CFDataGetTypeID() -> CFTypeID { CoreFoundationType.data.rawValue }
/// Returns the number that `CFGetTypeID` gives for a number that is not a boolean.
public func CFNumberGetTypeID() -> CFTypeID { CoreFoundationType.number.rawValue }
/// Returns the number that `CFGetTypeID` gives for one of the two booleans.
public func CFBooleanGetTypeID() -> CFTypeID { CoreFoundationType.boolean.rawValue }
/// Returns the number that `CFGetTypeID` gives for a date.
public func CFDateGetTypeID() -> CFTypeID { CoreFoundationType.date.rawValue }
/// Returns the number that `CFGetTypeID` gives for an array.
public func CFArrayGetTypeID() -> CFTypeID { CoreFoundationType.array.rawValue }
/// Returns the number that `CFGetTypeID` gives for a dictionary.
public func CFDictionaryGetTypeID() -> CFTypeID { CoreFoundationType.dictionary.rawValue }

/// Returns the number of an error; of a keychain call's error its status.
public func CFErrorGetCode(_ error: CFError) -> CFIndex { error.code }
/// Returns the domain that the error's number counts in.
public func CFErrorGetDomain(_ error: CFError) -> CFErrorDomain! { NSString(string: error.domain) }
/// Returns a sentence on the error for people.
public func CFErrorCopyDescription(_ error: CFError) -> CFString { NSString(string: error.localizedDescription) }
/// Returns what goes with an error: its sentences by their keys.
public func CFErrorCopyUserInfo(_ error: CFError) -> CFDictionary { NSDictionary(dictionary: error.userInfo) }

/// Makes data of bytes, which it copies.
///
/// - Parameters:
///   - allocator: Not used.
///   - bytes: The bytes to copy; may be `nil` if `length` is 0.
///   - length: The number of bytes.
/// - Returns: `nil` for a negative length, or if `bytes` is `nil` and `length` is not 0.
public func CFDataCreate(_ allocator: CFAllocator?, _ bytes: UnsafePointer<UInt8>?, _ length: CFIndex) -> CFData! {
  guard length > 0, let bytes else { return length == 0 ? NSData() : nil }
  return NSData(bytes: bytes, length: length)
}

/// Makes data of bytes without copying them.
///
/// - Parameters:
///   - allocator: Not used.
///   - bytes: Readable for as long as the data lives.
///   - length: A count of bytes.
///   - deallocator: `kCFAllocatorNull` where the bytes stay with the caller; any other frees what `malloc` gave when the
///     data goes.
/// - Returns: `nil` for a negative length, and where there is a length and no bytes.
public func CFDataCreateWithBytesNoCopy(
  _ allocator: CFAllocator?, _ bytes: UnsafePointer<UInt8>?, _ length: CFIndex, _ deallocator: CFAllocator?
) -> CFData! {
  guard length >= 0, let bytes else { return length == 0 ? NSData() : nil }
  return NSData(
    bytesNoCopy: UnsafeMutableRawPointer(mutating: bytes), length: length,
    freeWhenDone: deallocator !== kCFAllocatorNull)
}

/// Returns the bytes of data; good for as long as the data lives.
public func CFDataGetBytePtr(_ data: CFData) -> UnsafePointer<UInt8>! {
  data.bytes.assumingMemoryBound(to: UInt8.self)
}

/// Returns how many bytes data has.
public func CFDataGetLength(_ data: CFData) -> CFIndex { data.length }
/// Returns how many elements an array has.
public func CFArrayGetCount(_ array: CFArray) -> CFIndex { array.count }
/// Returns how many pairs a dictionary has.
public func CFDictionaryGetCount(_ dictionary: CFDictionary) -> CFIndex { dictionary.count }
/// Returns how many members a set has.
public func CFSetGetCount(_ set: CFSet) -> CFIndex { set.count }

/// Text is the same key of a dictionary whether it is Foundation's or Swift's, as on Apple's systems.
// swift-format-ignore: AvoidRetroactiveConformances
extension NSString: @retroactive _HasCustomAnyHashableRepresentation {
  public func _toCustomAnyHashable() -> AnyHashable? { AnyHashable(String(describing: self)) }
}

extension NSNumber {
  /// Whether it is one of the two booleans; the numbers 0 and 1 are not.
  var isBoolean: Bool { self === kCFBooleanTrue || self === kCFBooleanFalse }
}
