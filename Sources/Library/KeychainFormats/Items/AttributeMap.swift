public import Basics

/// Values by the codes of attributes: what an item is made of, and what is asked or changed of one.
///
/// An item has about ten attributes. At that size two arrays side by side take a third of a dictionary's memory, and going
/// through the codes finds a value sooner than hashing one does; what has many more is looked up in an index. The values of
/// an item that was read lie side by side as bytes until one of them is changed.
public struct AttributeMap<Value: AttributeMapValue> {
  @usableFromInline
  enum Contents {
    case values([Value])
    case packed(Value.Packed)
  }

  @usableFromInline private(set) var codes: [AttributeCode] = []
  @usableFromInline private(set) var contents = Contents.values([])
  /// Where each code stands, once there are more than are gone through.
  @usableFromInline private(set) var places: [AttributeCode: Int]?

  /// More than an item of any kind has: whoever makes one with thousands wants lookups to take long.
  private static var longestWalk: Int { 48 }

  /// Creates an empty map.
  public init() {}

  /// Creates a map of no more codes than are gone through, no two of them the same.
  init(_ codes: [AttributeCode], packed: Value.Packed) {
    self.codes = codes
    contents = .packed(packed)
  }

  /// Creates a map of pairs; where a code occurs twice the last wins.
  public init(_ pairs: some Sequence<(key: AttributeCode, value: Value)>) {
    reserveCapacity(pairs.underestimatedCount)
    for (code, value) in pairs { self[code] = value }
  }

  /// The codes, in the order in which they were added.
  @inlinable public var keys: [AttributeCode] { codes }

  /// The value for a code; `nil` if the map has none. Setting `nil` removes the code.
  public subscript(code: AttributeCode) -> Value? {
    @inlinable get { place(of: code).map(value) }
    set {
      switch (place(of: code), newValue) {
      case (let place?, let value?): change { _, values in values[place] = value }
      case (nil, let value?): append(value, forKey: code)
      case (let place?, nil): remove(at: place)
      case (nil, nil): break
      }
    }
  }

  /// Sets a value where the code has none yet.
  ///
  /// - Returns: Whether it had none.
  @discardableResult
  mutating func insert(_ value: Value, forKey code: AttributeCode) -> Bool {
    guard place(of: code) == nil else { return false }
    append(value, forKey: code)
    return true
  }

  /// Makes room for so many.
  public mutating func reserveCapacity(_ count: Int) {
    change { codes, values in
      codes.reserveCapacity(count)
      values.reserveCapacity(count)
    }
  }

  /// Keeps the values as bytes until one is changed, where each of them can be kept so.
  mutating func pack() {
    guard case .values(let values) = contents, let packed = Value.Packed(values) else { return }
    contents = .packed(packed)
  }

  /// The values where they are kept so.
  var packed: Value.Packed? { if case .packed(let packed) = contents { packed } else { nil } }

  /// Has the values at hand, for whoever asks for all of them more than once.
  mutating func unpack() {
    if case .packed(let packed) = contents { contents = .values(codes.indices.map { packed[$0] }) }
  }

  /// Whether both are kept as the same bytes under the same codes.
  func isKeptAlike(_ other: Self) -> Bool { packed != nil && codes == other.codes && packed == other.packed }

  @inlinable func place(of code: AttributeCode) -> Int? {
    if let places { return places[code] }
    return AttributeCode.place(of: code, in: codes)
  }

  @inlinable func value(at place: Int) -> Value {
    switch contents {
    case .values(let values): values[place]
    case .packed(let packed): packed[place]
    }
  }

  /// Both arrays, each held by nobody else meanwhile.
  private mutating func change(_ body: (inout [AttributeCode], inout [Value]) -> Void) {
    unpack()
    guard case .values(var values) = contents else { return }
    contents = .values([])
    body(&codes, &values)
    contents = .values(values)
  }

  private mutating func append(_ value: Value, forKey code: AttributeCode) {
    places?[code] = codes.count
    change { codes, values in
      codes.append(code)
      values.append(value)
    }
    guard places == nil, codes.count > Self.longestWalk else { return }
    places = Dictionary(uniqueKeysWithValues: zip(codes, codes.indices))
  }

  /// The last one takes its place.
  private mutating func remove(at place: Int) {
    places?[codes[place]] = nil
    change { codes, values in
      codes.swapAt(place, codes.count - 1)
      values.swapAt(place, values.count - 1)
      codes.removeLast()
      values.removeLast()
    }
    if place < codes.count { places?[codes[place]] = place }
  }
}

extension AttributeMap: RandomAccessCollection {
  /// The place of the first.
  @inlinable public var startIndex: Int { 0 }
  /// The place behind the last.
  @inlinable public var endIndex: Int { codes.count }
  /// A code with its value.
  @inlinable public subscript(place: Int) -> (key: AttributeCode, value: Value) { (codes[place], value(at: place)) }

  /// The pairs that fulfil a condition.
  public func filter(
    _ isIncluded: ((key: AttributeCode, value: Value)) throws -> Bool
  ) rethrows -> AttributeMap {
    var map = AttributeMap()
    for pair in self where try isIncluded(pair) { map.append(pair.value, forKey: pair.key) }
    return map
  }

  /// Adds others; `combine` decides where a code is there already, of its value and the other one.
  public mutating func merge(
    _ others: AttributeMap, uniquingKeysWith combine: (Value, Value) throws -> Value
  ) rethrows {
    for (code, value) in others { self[code] = try self[code].map { try combine($0, value) } ?? value }
  }

  /// The same codes with other values.
  public func mapValues<Other>(_ transform: (Value) throws -> Other) rethrows -> AttributeMap<Other> {
    var map = AttributeMap<Other>()
    map.reserveCapacity(count)
    for (code, value) in self { map[code] = try transform(value) }
    return map
  }
}

extension AttributeMap: ExpressibleByDictionaryLiteral {
  /// Creates a map of a literal; where a code occurs twice the last wins.
  public init(dictionaryLiteral elements: (AttributeCode, Value)...) {
    for (code, value) in elements { self[code] = value }
  }
}

extension AttributeMap: Sendable where Value: Sendable {}
extension AttributeMap.Contents: Sendable where Value: Sendable {}

extension AttributeMap: Equatable where Value: Equatable {
  /// Whether both have the same codes with the same values, in whatever order.
  public static func == (left: Self, right: Self) -> Bool {
    left.count == right.count && left.allSatisfy { right[$0.key] == $0.value }
  }
}

/// The codes of the item of each kind that was read last.
private let lastCodes = Locked<[ItemKind: [AttributeCode]]>([:])

extension AttributeMap {
  /// Has its codes in the memory of the item of this kind that was read before it, where they are the same: those of a
  /// keychain's items mostly are, in one order.
  mutating func shareCodes(amongItemsOf kind: ItemKind) {
    guard places == nil else { return }
    let own = codes
    codes = lastCodes.withLock { last in
      if let known = last[kind], known == own { return known }
      last[kind] = own
      return own
    }
  }

  /// The same with codes that are known beforehand.
  mutating func shareCodes(_ known: [AttributeCode]) { if codes == known { codes = known } }
}

/// What an `AttributeMap` can hold.
public protocol AttributeMapValue {
  /// In what form they take less memory than in an array.
  associatedtype Packed: PackedAttributeValues = NeverPacked<Self> where Packed.Value == Self
}

/// Values in less memory than an array of them takes, each of which is made where it is asked for.
public protocol PackedAttributeValues: Sendable, Equatable {
  /// What they are.
  associatedtype Value

  /// - Returns: `nil` if one of them cannot be kept so.
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
