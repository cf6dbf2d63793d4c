public import KeyhaulKit

extension DifferencePage {
  /// One of the two keychains.
  public struct Side: Sendable {
    /// What the keychain is of.
    public enum Kind: Sendable {
      /// A backup.
      case archive
      /// A virtual device as it is now.
      case device
    }

    let kind: Kind
    let name: String
    let argument: String?
    let deviceName: String?
    let itemCount: Int
    let hasKeychain: Bool
    let leftOut: [LeftOut]

    /// Creates one side of a comparison.
    ///
    /// - Parameters:
    ///   - kind: A backup, or a device.
    ///   - name: As messages call it.
    ///   - argument: What the person types for it; `nil` where it came from a stream.
    ///   - deviceName: The device that it is of, as far as it says.
    ///   - itemCount: How many items it has, sealed ones among them.
    ///   - hasKeychain: Whether it has a keychain at all, as a device always has.
    ///   - leftOut: Items of a device that a rule keeps out of every backup; none where two devices are compared.
    public init(
      kind: Kind, name: String, argument: String?, deviceName: String?, itemCount: Int, hasKeychain: Bool,
      leftOut: [LeftOut] = []
    ) {
      self.kind = kind
      self.name = name
      self.argument = argument
      self.deviceName = deviceName
      self.itemCount = itemCount
      self.hasKeychain = hasKeychain
      self.leftOut = leftOut
    }

    /// In a command.
    var word: String { ShellWord.typed(argument, else: kind == .device ? "DEVICE" : "ARCHIVE") }
  }

  /// An item of a device that is in no backup.
  public struct LeftOut: Sendable {
    let identity: ItemIdentity
    let reason: Reason

    /// Creates an item that its device keeps, with the rule that keeps it.
    public init(_ identity: ItemIdentity, because reason: Reason) {
      self.identity = identity
      self.reason = reason
    }
  }
}
