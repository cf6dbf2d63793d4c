/// What an `AttributeMap` can hold.
public protocol AttributeMapValue {
  /// In what form several of them are kept as bytes.
  associatedtype Packed: PackedAttributeValues = NeverPacked<Self> where Packed.Value == Self
}

/// Values that are kept as bytes, each of which is made anew where it is asked for.
public protocol PackedAttributeValues: Sendable, Equatable {
  /// What they are.
  associatedtype Value

  /// - Returns: `nil` where one of them cannot be kept so.
  init?(_ values: [Value])

  /// The value at a place, of which there is one.
  subscript(place: Int) -> Value { get }
}

/// The bytes of values that are never kept as such: there are none.
public enum NeverPacked<Value>: PackedAttributeValues {
  /// Keeps none.
  public init?(_ values: [Value]) { nil }

  public subscript(place: Int) -> Value { switch self {} }
}

extension SensitiveBytes: AttributeMapValue {}
extension Array: AttributeMapValue where Element == UInt8 {}

extension PropertyValue: AttributeMapValue {
  /// Kept as bytes where an item was read.
  public typealias Packed = PackedPropertyValues
}
