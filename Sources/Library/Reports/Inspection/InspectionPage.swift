public import KeyhaulKit

/// A page about the contents of a backup, with or without its password.
public struct InspectionPage: HTMLPage {
  /// The properties of a backup. Those that require the password are `nil` without it.
  public struct BackupInfo: Sendable {
    /// The name in messages.
    public var name: String
    /// The command-line argument; `nil` if the backup came from a stream.
    public var argument: String?
    /// The source device according to the backup. Untrusted.
    public var device: BackupDevice
    /// The date of the backup; `nil` if the backup has none.
    public var made: KeychainDate?
    /// The layout of the backup, which depends on the version of iOS.
    public var layout: BackupLayout
    /// `sha256:` and 64 hexadecimal digits.
    public var digest: String
    /// Whether the backup has a password.
    public var isEncrypted: Bool
    /// Whether the backup contains a keychain.
    public var hasKeychain: Bool
    /// The keybag. The page shows its iterations and classes.
    public var keybag: Keybag
    /// The estimated time to derive the key from the password on this machine.
    public var unlockTime: Duration?
    /// The number of stored payloads and their total size in bytes.
    public var storedFiles: (count: Int, byteCount: Int64)
    /// The files by domain and directory; `nil` if the list is encrypted and no password was given.
    public var files: Files?
    /// The items of the keychain; `nil` if no password was given, or the backup has no keychain.
    public var items: [KeychainEntry]?
    /// The apps that the items belong to.
    public var apps = AppDirectory([])
    /// The items of the source device that are not in the backup; `nil` if the device was not available.
    public var sourceDeviceItems: SourceDeviceItems?
    /// The findings about the backup that did not prevent the inspection.
    package var findings: [BackupFinding] = []
    /// The items that cannot be decrypted, by kind, class and reason.
    package var undecryptedItems: [UndecryptedItems.Group] = []
    /// The measured time to derive the key from the password on this machine; `nil` if no key was derived.
    package var measuredUnlock: Duration?
    /// The finding that makes the whole keychain unreadable; `nil` if there is none.
    package var keychainReadFailure: BackupFinding?
    /// Lines about the device and about the origin of the backup. Untrusted.
    package var about: [String] = []

    /// Creates the description of a backup, with the properties that are known without its password.
    public init(
      name: String, argument: String?, device: BackupDevice, made: KeychainDate?, layout: BackupLayout, digest: String,
      isEncrypted: Bool, hasKeychain: Bool, keybag: Keybag, storedFiles: (count: Int, byteCount: Int64)
    ) {
      self.name = name
      self.argument = argument
      self.device = device
      self.made = made
      self.layout = layout
      self.digest = digest
      self.isEncrypted = isEncrypted
      self.hasKeychain = hasKeychain
      self.keybag = keybag
      self.storedFiles = storedFiles
    }
  }

  /// The contents of the manifest.
  public struct Files: Sendable {
    let listing: FileList.Listing
    let branches: [DomainTree.Node]

    /// Creates the part of the page about files.
    ///
    /// - Parameters:
    ///   - listing: The counts of the manifest's files, including missing ones.
    ///   - branches: The domains of the manifest (the children of `DomainTree.root`).
    public init(_ listing: FileList.Listing, branches: [DomainTree.Node]) {
      self.listing = listing
      self.branches = branches
    }
  }

  let backup: BackupInfo
  let counts: Counts
  let program: String

  /// Creates the page of a backup.
  ///
  /// - Parameters:
  ///   - backup: The properties of the backup.
  ///   - program: Name and version of the program that makes the page.
  public init(_ backup: BackupInfo, program: String) {
    self.backup = backup
    self.program = program
    counts = Counts(backup)
  }

  /// The name of the source device according to the backup, or a substitute.
  var sourceName: String { backup.device.name.map { HTMLWriter.shortened($0) } ?? "the source device" }
  var missingCount: Int { backup.files?.listing.missingCount ?? 0 }

  /// Returns the page as one document. Equal backups give equal pages.
  ///
  /// - Throws: `.cryptoFailed` if the style sheet's digest cannot be computed.
  public func html() throws(DataProtectionError) -> String {
    let title = "What is in \(HTMLWriter.shortened(backup.name))"
    var frame = ReportPage(title: title, program: program)
    if backup.items == nil { frame.privacyNote = "This page contains no account names and no passwords." }
    return try frame.html(
      body: { page in
        writeHeading(to: &page)
        if backup.items != nil { tiles.write(to: &page) }
        FindingSection(backup.findings).write(to: &page)
        ItemSection(self).write(to: &page)
        EncryptedItemsSection(backup.undecryptedItems).write(to: &page)
        NotInBackupSection(sourceDeviceItems: backup.sourceDeviceItems).write(to: &page)
        FileSection(backup).write(to: &page)
        KeybagSection(backup).write(to: &page)
        StepList(self).write(to: &page)
      },
      footer: { page in
        page.element("p") { page in
          page.text("Archive ")
          page.element("code", backup.digest)
          page.text(".")
        }
      })
  }

  private func writeHeading(to page: inout HTMLWriter) {
    page.element("header") { page in
      page.element("h1") { page in
        page.text("What is in ")
        page.name(backup.name)
      }
      page.element("p", ["class": "verdict"], verdict)
      page.element("p", ["class": "facts"]) { page in
        page.text("Made ")
        if let date = backup.made { page.text(LongDateFormat.dateAndTime(date) + " ") }
        page.text("by ")
        page.element("strong") { page in
          if let name = backup.device.name { page.name(name) } else { page.text("an unnamed device") }
        }
        let model = [backup.device.productType, backup.device.productVersion.map { "iOS \($0)" }].compactMap(\.self)
        if !model.isEmpty { page.text(" (\(HTMLWriter.shortened(model.joined(separator: ", "))))") }
        let files = HumanReadable.count(backup.storedFiles.count, "file")
        page.text(", \(protectionText). \(files), \(HumanReadable.bytes(backup.storedFiles.byteCount)).")
      }
      for line in backup.about {
        page.element("p", ["class": "facts"], HTMLWriter.shortened(line, to: Self.maximumAboutLength))
      }
      if backup.hasKeychain { page.element("p", ["class": "facts"], BackupBlindSpots.line) }
    }
  }

  private var protectionText: String {
    if backup.findings.contains(where: { $0.kind == .falseClaim }) {
      return "with unencrypted files, although Manifest.plist says that the backup is encrypted"
    }
    if isDecryptedCopy { return "with unencrypted files and password-protected items" }
    return backup.isEncrypted ? "with a password" : "without a password"
  }

  /// The maximum number of Unicode scalars in a line about the device.
  private static let maximumAboutLength = 400
  /// The maximum number of Unicode scalars of the device's name in a tile or a filter.
  static let maximumDeviceNameLength = 24

  private var tiles: Tiles {
    let noDeviceTile = Tiles.Tile(
      style: .stays, symbol: "<", count: counts.noDevice,
      text: backup.unbound?.blocksRestore == true ? "for no device" : "without a name, for no device")
    return Tiles(
      tiles: [
        .init(style: .moves, symbol: "+", count: counts.anyDevice, text: "for any device"),
        .init(
          style: .stays, symbol: "<", count: counts.sameDevice,
          text: "only for \(HTMLWriter.shortened(sourceName, to: Self.maximumDeviceNameLength))"),
        .init(style: .lost, symbol: "!", count: counts.damaged, text: "cannot be read"),
        .init(
          style: .lost, symbol: "?", count: missingCount, text: missingCount == 1 ? "file is missing" : "files missing"
        ),
      ] + (counts.noDevice > 0 ? [noDeviceTile] : []) + NotInBackupSection.tile(backup.sourceDeviceItems))
  }
}

extension InspectionPage.BackupInfo {
  /// The devices that an item can be restored to.
  enum Portability { case anyDevice, sameDevice, noDevice, damaged }

  /// The class keys that lack the device's key wrap; `nil` if no class key lacks it.
  var unbound: UnboundClassKeys? { UnboundClassKeys(of: keybag, backupHasPassword: isEncrypted) }

  /// Returns the devices that an item can be restored to. Whether the source device's key was available makes no
  /// difference.
  func portability(of item: KeychainEntry) -> Portability {
    if item.reason?.isDamage == true { return .damaged }
    if item.isSecretOnly { return .noDevice }
    return portability(of: item.protection)
  }

  /// Returns the devices that items of a protection class can be restored to.
  func portability(of protection: ProtectionClass?) -> Portability {
    if let unbound {
      // The command `restore` refuses such a backup.
      if unbound.blocksRestore { return .noDevice }
      if unbound.contains(protection) { return .anyDevice }
    }
    return isEncrypted && protection?.isThisDeviceOnly == false ? .anyDevice : .sameDevice
  }
}

extension InspectionPage {
  /// The numbers of items by the devices that they can be restored to.
  struct Counts: Sendable {
    private(set) var total = 0
    private(set) var anyDevice = 0
    private(set) var sameDevice = 0
    private(set) var noDevice = 0
    private(set) var damaged = 0
    private(set) var byKind: [ItemKind: Int] = [:]
    private(set) var byProtection: [ProtectionClass?: Int] = [:]
    private(set) var byDamage: [Reason: Int] = [:]

    init(_ backup: BackupInfo) {
      for item in backup.items ?? [] {
        total += 1
        byKind[item.identity.kind, default: 0] += 1
        byProtection[item.protection, default: 0] += 1
        switch backup.portability(of: item) {
        case .anyDevice: anyDevice += 1
        case .sameDevice: sameDevice += 1
        case .noDevice: noDevice += 1
        case .damaged:
          damaged += 1
          if let reason = item.reason { byDamage[reason, default: 0] += 1 }
        }
      }
    }
  }
}

extension InspectionPage {
  /// The first sentence of the page: the devices that this keychain can be restored to.
  var verdict: String {
    if backup.keychainReadFailure != nil {
      return "The keychain in this backup cannot be read, so its contents are not known."
    }
    guard backup.hasKeychain else { return "This backup contains no keychain." }
    return portabilityText
      + (counts.damaged == 0 ? "." : "; \(HumanReadable.grouped(counts.damaged)) cannot be read in this copy.")
  }

  /// Whether no item can be decrypted on any device.
  var isKeybagUnusable: Bool { backup.findings.contains(where: \.preventsReadingKeybag) }

  /// Whether the backup is a decrypted copy, which cannot be restored.
  var isDecryptedCopy: Bool { backup.findings.contains(.decryptedCopy) }

  private var portabilityText: String {
    if let obstacleText { return obstacleText }
    guard backup.isEncrypted else {
      return "This keychain can be restored only to \(sourceName), because the backup has no password"
    }
    guard backup.items != nil else {
      return
        "With the password, this keychain can move to any device; its this-device-only items can be restored only to "
        + sourceName
    }
    return itemPortabilityText
  }

  /// A sentence about an obstacle: no device can restore the keychain, or no device writes such a keychain. `nil` if there
  /// is no obstacle.
  private var obstacleText: String? {
    if let unbound = backup.unbound {
      return unbound.blocksRestore
        ? "No device accepts this keychain: \(unbound.detailedSummary). As a result, \(unbound.consequence)"
        : "No device writes such a keychain: \(unbound.detailedSummary). As a result, \(unbound.consequence)"
    }
    if isDecryptedCopy { return "This decrypted copy cannot be restored: use the backup that it was made from" }
    if isKeybagUnusable {
      return "The keybag of this backup is unusable: no keychain item can be decrypted, on any device"
    }
    if counts.noDevice > 0, counts.noDevice + counts.damaged == counts.total {
      return "This keychain contains secrets without names, as iOS 4 stored them, and cannot be restored to any device"
    }
    return nil
  }

  /// A sentence about the devices that the items can be restored to with the password, according to the counts of items.
  private var itemPortabilityText: String {
    let total = HumanReadable.grouped(counts.total)
    switch (counts.anyDevice, counts.sameDevice) {
    case (0, 0):
      return counts.total == 0
        ? "The keychain in this backup is empty"
        : "No item in this keychain can be decrypted"
    case (0, _):
      return "This keychain can be restored only to \(sourceName): all items that can be decrypted are this-device-only"
    case (_, 0): return "With the password, this keychain can move to any device"
    case (_, let sameDeviceCount):
      return
        "With the password, this keychain can move to any device; \(HumanReadable.grouped(sameDeviceCount)) of \(total) items "
        + "can be restored only to \(sourceName)"
    }
  }
}
