import Basics
import Foundation
import KeychainFormats
import VirtualDevice

extension SecItemValue {
  /// The largest depth of arrays and dictionaries in a query. The calls themselves need one level.
  static let maximumQueryDepth = 8

  /// Converts a value in a query dictionary.
  ///
  /// - Throws: `.parameter` for an object that cannot be a value, and for values that are nested too deeply.
  init(_ object: AnyObject, depth: Int = maximumQueryDepth) throws(SecItemError) {
    switch object {
    case let string as NSString: self = .string(String(describing: string))
    case let data as NSData: self = .data(data.byteArray)
    case let number as NSNumber: self = .init(number)
    case let date as NSDate: self = .date(KeychainDate(secondsSinceReferenceDate: date.timeIntervalSinceReferenceDate))
    case let uuid as NSUUID: self = .uuid(uuid.byteArray)
    case is NSNull: self = .null
    case let array as NSArray:
      guard depth > 0 else { throw .tooDeep }
      var values: [SecItemValue] = []
      for element in array { values.append(try SecItemValue(element as AnyObject, depth: depth - 1)) }
      self = .array(values)
    case let dictionary as NSDictionary:
      guard depth > 0 else { throw .tooDeep }
      self = .dictionary(try SecItemQuery(dictionary, depth: depth - 1))
    case let certificate as SecCertificate: self = .reference(certificate.reference)
    case let key as SecKey: self = .reference(key.reference)
    case let identity as SecIdentity: self = .reference(identity.reference)
    case let control as SecAccessControl: self = .accessControl(control.control)
    case let context as LAContext: self = .context(context.keychainContext)
    default: throw SecItemError(.parameter, "a \(type(of: object)) cannot be a value in a query")
    }
  }

  private init(_ number: NSNumber) {
    if number.isBoolean {
      self = .boolean(number.boolValue)
    } else if let integer = Int64(exactly: number) {
      self = .number(integer)
    } else {
      self = .real(number.doubleValue)
    }
  }

  /// The value as an object for callers.
  var object: AnyObject {
    switch self {
    case .null: NSNull()
    case .string(let text): NSString(string: text)
    case .data(let bytes): NSData(data: Data(bytes))
    case .secret(let bytes): NSData(data: bytes.withBytes { Data($0) })
    case .number(let number): NSNumber(value: number)
    case .real(let number): NSNumber(value: number)
    case .boolean(let flag): NSNumber(value: flag)
    case .date(let date): NSDate(timeIntervalSinceReferenceDate: date.secondsSinceReferenceDate)
    case .uuid(let bytes): NSUUID(byteArray: bytes) ?? NSNull()
    case .array(let values): NSArray(array: values.map(\.object))
    case .dictionary(let values): NSDictionary(values)
    case .reference(let reference): reference.object
    case .accessControl(let control): SecAccessControl(control)
    case .context: NSNull()
    }
  }
}

extension SecItemQuery {
  /// Converts a query dictionary with Apple's keys.
  ///
  /// - Throws: `.parameter` for a key that is not a string; the errors of the values.
  init(_ dictionary: NSDictionary, depth: Int = SecItemValue.maximumQueryDepth) throws(SecItemError) {
    self.init()
    for key in dictionary.allKeys {
      guard let name = key as? String else { throw SecItemError(.parameter, "a key in the query is not a string") }
      guard let value = dictionary.object(forKey: key) else { continue }
      // Foundation has already bridged the data. Converting it to an object and back would copy it byte by byte.
      if type(of: value) == Data.self, let data = value as? Data {
        self[name] = .data(Array(data))
      } else {
        self[name] = try SecItemValue(value as AnyObject, depth: depth)
      }
    }
  }
}

extension NSData {
  fileprivate var byteArray: [UInt8] { Array(UnsafeRawBufferPointer(start: bytes, count: length)) }
}

extension NSDictionary {
  fileprivate convenience init(_ values: SecItemQuery) {
    self.init(dictionary: values.mapValues(\.object))
  }
}

extension NSUUID {
  fileprivate var byteArray: [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 16)
    getBytes(&bytes)
    return bytes
  }

  /// Creates a UUID; `nil` unless there are 16 bytes.
  fileprivate convenience init?(byteArray: [UInt8]) {
    guard byteArray.count == 16 else { return nil }
    self.init(uuidBytes: byteArray)
  }
}

extension SecItemError {
  fileprivate static let tooDeep = SecItemError(.parameter, "the values of the query are nested too deeply")
}
