internal import Basics
public import KeychainFormats

/// The class keys of one keybag, as far as they could be opened.
///
/// Keys never leave it but as keys of items and files, and, for a device's memory, all at once as a `Secret`. May be used
/// from several threads; they take turns.
public struct ClassKeys: ~Copyable, Sendable {
  /// The 16 bytes of the keybag's UUID.
  public let keybagUUID: [UInt8]
  /// How many class keys are wrapped with the password.
  public let wrappedCount: Int
  /// How many of these unwrapped. Fewer than `wrappedCount` mean damage, or that no password was given.
  public let unwrappedCount: Int
  /// The key of the records in a list of files of iOS 10.0, where the backup is such a one: `BackupArchive.recordKey`
  /// makes it.
  public var recordKey: RecordKey?

  private(set) var entries: [KeyClass: Entry]
  private let workspace: Locked<SealingWorkspace>

  /// One class of the keybag.
  struct Entry: Sendable {
    var availability: ClassKeyAvailability
    var key: HeldKey?
    /// `nil` for an AES key.
    var publicKey: [UInt8]?
    /// What is wrong with the class's record, without a key's bytes.
    var problem: String?
  }

  /// A class key with an owner that can sit in a collection; wiped with its last holder.
  final class HeldKey: Sendable {
    let secret: Secret
    /// Made ready at the first unwrapping: of thousands of items each has its key wrapped with one of a few of these.
    private let unwrapping = Locked<CipherContext?>(nil)

    init(_ secret: consuming Secret) { self.secret = secret }

    /// Opens a key that is wrapped with this one; `nil` where it is not.
    func unwrap(_ wrapped: [UInt8]) throws(DataProtectionError) -> Secret? {
      try unwrapping.withLock { (context) throws(DataProtectionError) in
        if context == nil { context = try KeyWrap.unwrapping(with: secret) }
        switch context {
        case .some(let context): return try KeyWrap.unwrap(wrapped, context)
        case .none: return nil
        }
      }
    }
  }

  init(
    keybagUUID: [UInt8], entries: [KeyClass: Entry], wrappedCount: Int, unwrappedCount: Int
  ) throws(DataProtectionError) {
    let workspace = try SealingWorkspace()
    self.keybagUUID = keybagUUID
    self.entries = entries
    self.wrappedCount = wrappedCount
    self.unwrappedCount = unwrappedCount
    self.workspace = Locked(workspace)
  }

  /// The same keys with ciphers of their own, for another thread: it takes turns with nobody. No key is copied.
  borrowing func sharing() throws(DataProtectionError) -> ClassKeys {
    var keys = try ClassKeys(
      keybagUUID: keybagUUID, entries: entries, wrappedCount: wrappedCount, unwrappedCount: unwrappedCount)
    keys.recordKey = recordKey
    return keys
  }

  /// Those of a keybag of which nothing opens.
  package static func none() throws(DataProtectionError) -> ClassKeys {
    try ClassKeys(keybagUUID: [], entries: [:], wrappedCount: 0, unwrappedCount: 0)
  }

  /// Returns whether the key of a class is available, and why not where it isn't.
  public borrowing func availability(of keyClass: KeyClass) -> ClassKeyAvailability {
    entries[keyClass]?.availability ?? .absent
  }

  /// Whether a key of this class is available.
  public borrowing func hasKey(of keyClass: KeyClass) -> Bool { entries[keyClass]?.key != nil }

  /// The classes the keybag has, in ascending order.
  public var classes: [KeyClass] { entries.keys.sorted() }

  /// What is wrong with single classes: "10 of 11 class keys unwrap, class 7 does not". `nil` where nothing is.
  public var damageReport: String? {
    let damaged = classes.filter { entries[$0]?.availability == .damaged }
    guard !damaged.isEmpty else { return nil }
    let names = damaged.map { keyClass in
      guard let problem = entries[keyClass]?.problem else { return "class \(keyClass.rawValue) does not" }
      return "class \(keyClass.rawValue): \(problem)"
    }
    return "\(unwrappedCount) of \(wrappedCount) class keys unwrap, " + names.joined(separator: ", ")
  }

  /// What could be opened, in a line: "11 of 11 class keys unwrap", or the damage report.
  public var summary: String { damageReport ?? "\(unwrappedCount) of \(wrappedCount) class keys unwrap" }

  /// Forgets keys, as locking a device does. The keys are overwritten; the classes are `.locked` from now on.
  public mutating func drop(_ keyClasses: some Sequence<KeyClass>) {
    for keyClass in keyClasses where entries[keyClass]?.key != nil {
      entries[keyClass]?.key = nil
      entries[keyClass]?.availability = .locked
    }
  }

  /// Lends the ciphers to one caller at a time.
  borrowing func withWorkspace<Result: ~Copyable, Failure: Error>(
    _ body: (borrowing SealingWorkspace) throws(Failure) -> sending Result
  ) throws(Failure) -> Result {
    try workspace.withLock { (workspace) throws(Failure) in try body(workspace) }
  }
}

/// The keys of an unlocked keybag for work that several threads do.
package final class SharedClassKeys: Sendable {
  /// Whoever opens items with them takes turns with the others.
  package let keys: ClassKeys

  /// Shares keys that their owner keeps. No key is copied.
  package init(_ keys: borrowing ClassKeys) throws(DataProtectionError) { self.keys = try keys.sharing() }

  /// The same keys with ciphers of their own, which wait for nobody.
  package func own() throws(DataProtectionError) -> ClassKeys { try keys.sharing() }
}
