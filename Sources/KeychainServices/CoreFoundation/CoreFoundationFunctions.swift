// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

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
/// Returns the number that `CFGetTypeID` gives for a number that is no boolean.
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
public func CFErrorGetDomain(_ error: CFError) -> CFString { NSString(string: error.domain) }
/// Returns a sentence on the error for people.
public func CFErrorCopyDescription(_ error: CFError) -> CFString { NSString(string: error.localizedDescription) }

extension NSNumber {
  /// Whether it is one of the two booleans; the numbers 0 and 1 are not.
  var isBoolean: Bool { self === kCFBooleanTrue || self === kCFBooleanFalse }
}
