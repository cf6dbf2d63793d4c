public import Basics

/// What an `AttributeMap` can hold.
public protocol AttributeMapValue {
  /// In what form they take less memory than in an array.
  associatedtype Packed: PackedAttributeValues = NeverPacked<Self> where Packed.Value == Self
}

/// Values in less memory than an array of them takes, each of which is made where it is asked for.
public protocol PackedAttributeValues: Sendable, Equatable {
  /// What they are.
  associatedtype Value

  /// - Returns: `nil` where one of them cannot be kept so.
  init?(_ values: [Value])

  /// The value at a place, of which there is one.
  subscript(place: Int) -> Value { get }
}

/// Of values that are never kept otherwise: there are none.
public enum NeverPacked<Value>: PackedAttributeValues {
  /// Keeps none.
  public init?(_ values: [Value]) { nil }

  public subscript(place: Int) -> Value { switch self {} }
}

extension SensitiveBytes: AttributeMapValue {
  /// Kept without an array where it is the only one.
  public typealias Packed = LoneSensitiveBytes
}

/// The only secret of an item, as most items have it: an array of one takes as much memory as the secret.
public struct LoneSensitiveBytes: PackedAttributeValues {
  private let secret: SensitiveBytes

  /// Keeps one.
  public init?(_ values: [SensitiveBytes]) {
    guard values.count == 1 else { return nil }
    secret = values[0]
  }

  public subscript(place: Int) -> SensitiveBytes { secret }

  public static func == (left: Self, right: Self) -> Bool { left.secret.constantTimeEquals(right.secret) }
}

extension Array: AttributeMapValue where Element == UInt8 {}

extension PropertyValue: AttributeMapValue {
  /// Kept as bytes where an item was read.
  public typealias Packed = PackedPropertyValues
}
