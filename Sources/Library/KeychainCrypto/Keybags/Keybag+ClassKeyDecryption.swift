import Basics
internal import KeychainFormats

extension Keybag.ClassKey {
  /// The result of unwrapping a class key.
  struct Opened {
    var entry: ClassKeys.Entry
    /// Whether there was a password wrap to try, and whether it was unwrapped.
    var triedPassword = false
    var unwrapped = false

    /// Processes the bytes below the password's wrap: the key itself, or the key wrapped with the device key.
    fileprivate mutating func openDeviceLayer(
      _ inner: consuming Secret, _ wrap: Keybag.WrapFlags, _ deviceKey: DeviceKey?
    ) throws(DataProtectionError) {
      guard wrap.contains(.device) else { return try entry.accept(inner, as: .available) }
      switch deviceKey {
      case .none: entry.availability = .deviceBound
      case .some(let deviceKey):
        let key = try inner.withBytes { (bytes) throws(DataProtectionError) in try deviceKey.unwrap(bytes) }
        try entry.accept(key, as: .availableThroughDevice)
      }
    }
  }

  var isPasswordWrapped: Bool { wrap?.contains(.password) == true }

  /// Removes the password's wrap (RFC 3394, with an integrity check), then the device key's (AES-CBC, without one).
  func open(
    passcodeKey: borrowing Secret?, deviceKey: DeviceKey?
  ) throws(DataProtectionError) -> Opened {
    let shape: Shape
    switch checkedShape() {
    case .success(let found): shape = found
    case .failure(let problem): return Opened(entry: ClassKeys.Entry(unusable: problem.text))
    }
    var opened = Opened(entry: ClassKeys.Entry(availability: .locked, publicKey: shape.publicKey))
    guard shape.wrap.contains(.password) else {
      try opened.openDeviceLayer(Secret(copying: shape.wrappedKey), shape.wrap, deviceKey)
      return opened
    }
    switch passcodeKey {
    case .none: break
    case .some(let passcodeKey):
      opened.triedPassword = true
      if let inner = try KeyWrap.unwrap(shape.wrappedKey, with: passcodeKey) {
        opened.unwrapped = true
        try opened.openDeviceLayer(inner, shape.wrap, deviceKey)
      } else {
        opened.entry.availability = .damaged
      }
    }
    return opened
  }

  /// The fields of a valid record.
  private struct Shape {
    var wrap: Keybag.WrapFlags
    var wrappedKey: [UInt8]
    var publicKey: [UInt8]?
  }

  private struct Problem: Error {
    var text: String
  }

  private func checkedShape() -> Result<Shape, Problem> {
    guard let wrap else { return .failure(Problem(text: "it has no WRAP")) }
    guard !wrap.isEmpty, wrap.isSubset(of: [.device, .password]) else {
      return .failure(Problem(text: "its WRAP is \(wrap.rawValue)"))
    }
    guard let wrappedKey else { return .failure(Problem(text: "it has no WPKY")) }
    let size = ClassKeys.keySize + (wrap.contains(.password) ? KeyWrap.overhead : 0)
    guard wrappedKey.count == size else {
      return .failure(Problem(text: "its WPKY has \(wrappedKey.count) bytes, not \(size)"))
    }
    switch keyType {
    case .symmetric: return .success(Shape(wrap: wrap, wrappedKey: wrappedKey))
    case .curve25519:
      guard let publicKey, publicKey.count == X25519.size else {
        return .failure(Problem(text: "it has no PBKY of \(X25519.size) bytes"))
      }
      return .success(Shape(wrap: wrap, wrappedKey: wrappedKey, publicKey: publicKey))
    case .some(let other): return .failure(Problem(text: "its KTYP is \(other.rawValue)"))
    case .none: return .failure(Problem(text: "its KTYP is not a number"))
    }
  }
}

extension ClassKeys.Entry {
  /// Creates the entry of a class that exists but cannot be used.
  init(unusable problem: String) {
    self.init(availability: .damaged, problem: problem)
  }

  /// Stores a key. The public key of a Curve25519 class proves the private key, even below the device key's wrap.
  fileprivate mutating func accept(
    _ key: consuming Secret, as availability: ClassKeyAvailability
  ) throws(DataProtectionError) {
    if let publicKey, try X25519.publicKey(of: key) != publicKey {
      self.availability = availability == .availableThroughDevice ? .deviceBound : .damaged
      problem = availability == .availableThroughDevice ? nil : "its PBKY does not match its private key"
      return
    }
    self.availability = availability
    self.key = ClassKeys.WrappingKey(key)
  }
}
