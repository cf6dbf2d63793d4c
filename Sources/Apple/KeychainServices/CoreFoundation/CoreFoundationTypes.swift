// swift-format-ignore-file: AlwaysUseLowerCamelCase

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
