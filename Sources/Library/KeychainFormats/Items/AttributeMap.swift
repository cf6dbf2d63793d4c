public import Basics

/// Values by attribute code: the content of an item, a query or a change.
///
/// An item has about ten attributes. At that size, two parallel arrays take a third of a dictionary's memory, and a
/// linear search is faster than hashing. Larger maps have an index. The values of an item that was read are stored as
/// packed bytes until one of them changes.
@usableFromInline package struct AttributeMap<Value: AttributeMapValue> {
  @usableFromInline
  enum Contents {
    case values([Value])
    case packed(Value.Packed)
  }

  @usableFromInline private(set) var codes: [AttributeCode] = []
  @usableFromInline private(set) var contents = Contents.values([])
  /// The index of each code, once there are too many codes for a linear search.
  @usableFromInline private(set) var indexes: [AttributeCode: Int]?

  /// The maximum number of codes for a linear search, more than any kind of item has. A crafted item may have
  /// thousands.
  private static var maximumLinearSearchCount: Int { 48 }

  /// Creates an empty map.
  package init() {}

  /// Creates a map with distinct codes, few enough for a linear search.
  init(_ codes: [AttributeCode], packed: Value.Packed) {
    self.codes = codes
    contents = .packed(packed)
  }

  /// Creates a map from pairs; if a code occurs twice, the last value counts.
  package init(_ pairs: some Sequence<(key: AttributeCode, value: Value)>) {
    reserveCapacity(pairs.underestimatedCount)
    for (code, value) in pairs { self[code] = value }
  }

  /// The codes, in the order in which they were added.
  @inlinable package var keys: [AttributeCode] { codes }

  /// The value for a code, or `nil` if the map does not contain it. Setting `nil` removes the code.
  package subscript(code: AttributeCode) -> Value? {
    @inlinable get { index(of: code).map(value) }
    set {
      switch (index(of: code), newValue) {
      case (let index?, let value?): change { _, values in values[index] = value }
      case (nil, let value?): append(value, forKey: code)
      case (let index?, nil): remove(at: index)
      case (nil, nil): break
      }
    }
  }

  /// Reserves space for a number of values.
  package mutating func reserveCapacity(_ count: Int) {
    change { codes, values in
      codes.reserveCapacity(count)
      values.reserveCapacity(count)
    }
  }

  /// Stores the values as packed bytes until one changes, if all of them can be packed.
  mutating func pack() {
    guard case .values(let values) = contents, let packed = Value.Packed(values) else { return }
    contents = .packed(packed)
  }

  /// The packed values, or `nil` if they are not packed.
  var packed: Value.Packed? { if case .packed(let packed) = contents { packed } else { nil } }

  /// Unpacks the values, for a caller that reads all of them more than once.
  mutating func unpack() {
    if case .packed(let packed) = contents { contents = .values(codes.indices.map { packed[$0] }) }
  }

  /// Returns whether both maps store the same packed bytes under the same codes.
  func hasSamePackedValues(as other: Self) -> Bool { packed != nil && codes == other.codes && packed == other.packed }

  @inlinable func index(of code: AttributeCode) -> Int? {
    if let indexes { return indexes[code] }
    return AttributeCode.index(of: code, in: codes)
  }

  @inlinable func value(at index: Int) -> Value {
    switch contents {
    case .values(let values): values[index]
    case .packed(let packed): packed[index]
    }
  }

  /// Calls a closure with both arrays, uniquely referenced so that changes do not copy them.
  private mutating func change(_ body: (inout [AttributeCode], inout [Value]) -> Void) {
    unpack()
    guard case .values(var values) = contents else { return }
    contents = .values([])
    body(&codes, &values)
    contents = .values(values)
  }

  private mutating func append(_ value: Value, forKey code: AttributeCode) {
    indexes?[code] = codes.count
    change { codes, values in
      codes.append(code)
      values.append(value)
    }
    guard indexes == nil, codes.count > Self.maximumLinearSearchCount else { return }
    indexes = Dictionary(uniqueKeysWithValues: zip(codes, codes.indices))
  }

  /// Removes a value and moves the last one to its index.
  private mutating func remove(at index: Int) {
    indexes?[codes[index]] = nil
    change { codes, values in
      codes.swapAt(index, codes.count - 1)
      values.swapAt(index, values.count - 1)
      codes.removeLast()
      values.removeLast()
    }
    if index < codes.count { indexes?[codes[index]] = index }
  }
}

extension AttributeMap: RandomAccessCollection {
  /// The index of the first pair.
  @inlinable package var startIndex: Int { 0 }
  /// The index after the last pair.
  @inlinable package var endIndex: Int { codes.count }
  /// The code and the value at an index.
  @inlinable package subscript(index: Int) -> (key: AttributeCode, value: Value) { (codes[index], value(at: index)) }

  /// Returns the pairs that satisfy a condition.
  package func filter(
    _ isIncluded: ((key: AttributeCode, value: Value)) throws -> Bool
  ) rethrows -> AttributeMap {
    var map = AttributeMap()
    for pair in self where try isIncluded(pair) { map.append(pair.value, forKey: pair.key) }
    return map
  }

  /// Adds the values of another map; `combine` merges the existing and the new value of a code.
  package mutating func merge(
    _ others: AttributeMap, uniquingKeysWith combine: (Value, Value) throws -> Value
  ) rethrows {
    for (code, value) in others { self[code] = try self[code].map { try combine($0, value) } ?? value }
  }

  /// Returns a map of the same codes with transformed values.
  package func mapValues<Other>(_ transform: (Value) throws -> Other) rethrows -> AttributeMap<Other> {
    var map = AttributeMap<Other>()
    map.reserveCapacity(count)
    for (code, value) in self { map[code] = try transform(value) }
    return map
  }
}

extension AttributeMap: ExpressibleByDictionaryLiteral {
  /// Creates a map from a literal; if a code occurs twice, the last value counts.
  @usableFromInline package init(dictionaryLiteral elements: (AttributeCode, Value)...) {
    for (code, value) in elements { self[code] = value }
  }
}

extension AttributeMap: Sendable where Value: Sendable {}
extension AttributeMap.Contents: Sendable where Value: Sendable {}

extension AttributeMap: Equatable where Value: Equatable {
  /// Returns whether both have the same codes with the same values, in any order.
  @usableFromInline package static func == (left: Self, right: Self) -> Bool {
    left.count == right.count && left.allSatisfy { right[$0.key] == $0.value }
  }
}

/// The codes of the last item of each kind.
private let lastCodes = Locked<[ItemKind: [AttributeCode]]>([:])

extension AttributeMap {
  /// Shares the storage of the codes with the previous item of the same kind if they are equal, as they mostly are.
  mutating func internCodes(for kind: ItemKind) {
    guard indexes == nil else { return }
    let newCodes = codes
    codes = lastCodes.withLock { last in
      if let sharedCodes = last[kind], sharedCodes == newCodes { return sharedCodes }
      last[kind] = newCodes
      return newCodes
    }
  }

  /// Shares the storage of the given codes if they are equal.
  mutating func internCodes(_ sharedCodes: [AttributeCode]) { if codes == sharedCodes { codes = sharedCodes } }
}

/// A type that an `AttributeMap` can contain.
@usableFromInline package protocol AttributeMapValue {
  /// A representation of several values that takes less memory than an array.
  associatedtype Packed: PackedAttributeValues = UnpackedStorage<Self> where Packed.Value == Self
}

/// A compact representation of several values. Each value is created when it is accessed.
@usableFromInline package protocol PackedAttributeValues: Sendable, Equatable {
  /// The type of the values.
  associatedtype Value

  /// Packs values.
  ///
  /// - Returns: `nil` if one of the values cannot be packed.
  init?(_ values: [Value])

  /// The value at an index, which must exist.
  subscript(index: Int) -> Value { get }
}

/// The packed representation of types that are never packed. It has no instances.
@usableFromInline package enum UnpackedStorage<Value>: PackedAttributeValues {
  /// Always returns `nil`.
  @usableFromInline package init?(_ values: [Value]) { nil }

  @usableFromInline package subscript(index: Int) -> Value { switch self {} }
}

extension SensitiveBytes: AttributeMapValue {
  /// A single secret is stored without an array.
  @usableFromInline package typealias Packed = SingleSecretStorage
}

/// Storage for a single secret, as most items have: an array for it would take as much memory as the secret.
@usableFromInline package struct SingleSecretStorage: PackedAttributeValues {
  private let secret: SensitiveBytes

  /// Stores a single secret; `nil` if there is not exactly one.
  @usableFromInline package init?(_ values: [SensitiveBytes]) {
    guard values.count == 1 else { return nil }
    secret = values[0]
  }

  @usableFromInline package subscript(index: Int) -> SensitiveBytes { secret }

  @usableFromInline package static func == (left: Self, right: Self) -> Bool {
    left.secret.constantTimeEquals(right.secret)
  }
}

extension Array: AttributeMapValue where Element == UInt8 {}

extension PropertyValue: AttributeMapValue {
  /// The values of an item that was read are stored as bytes.
  @usableFromInline package typealias Packed = PackedPropertyValues
}
