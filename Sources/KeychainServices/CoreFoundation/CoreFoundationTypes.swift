// swift-format-ignore-file: AlwaysUseLowerCamelCase

public import Foundation

// Core Foundation's names for what Foundation on Linux is made of, so that `query as CFDictionary`, `var result: CFTypeRef?`
// and `result as? Data` mean there what they mean on Apple's systems.

public typealias CFTypeRef = AnyObject
public typealias CFString = NSString
public typealias CFMutableString = NSMutableString
public typealias CFData = NSData
public typealias CFMutableData = NSMutableData
public typealias CFNumber = NSNumber
public typealias CFBoolean = NSNumber
public typealias CFDate = NSDate
public typealias CFArray = NSArray
public typealias CFMutableArray = NSMutableArray
public typealias CFDictionary = NSDictionary
public typealias CFMutableDictionary = NSMutableDictionary
public typealias CFError = NSError
public typealias CFNull = NSNull
public typealias CFURL = NSURL
public typealias CFIndex = Int
public typealias CFOptionFlags = UInt
public typealias CFTypeID = UInt
public typealias CFTimeInterval = Double
public typealias CFAbsoluteTime = Double

/// The result of a keychain call; 0 is success.
public typealias OSStatus = Int32

public let kCFBooleanTrue: CFBoolean! = NSNumber(value: true)
public let kCFBooleanFalse: CFBoolean! = NSNumber(value: false)
public let kCFNull: CFNull! = NSNull()

/// Where Core Foundation takes memory from: here always from Swift, so that it is only ever the default.
public final class CFAllocator: Sendable {
  fileprivate init() {}
}

public let kCFAllocatorDefault: CFAllocator! = nil
public let kCFAllocatorSystemDefault: CFAllocator! = CFAllocator()
