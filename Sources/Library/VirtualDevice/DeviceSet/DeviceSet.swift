public import Basics
public import KeychainCrypto
import KeychainFormats

/// A folder of virtual devices, each in its own subfolder.
public struct DeviceSet: Sendable {
  /// The folder's path, without a trailing slash.
  public let path: String
  /// The environment of all devices.
  public let environment: DeviceEnvironment

  /// Creates a set of devices in a folder.
  ///
  /// - Parameters:
  ///   - path: The folder's path. If it does not exist, it is created with the first device, accessible only to its
  ///     owner.
  ///   - environment: The clock, the randomness and the cost of a passcode attempt for the devices.
  public init(path: String, environment: DeviceEnvironment = .system) {
    self.path = Self.trimmed(path)
    self.environment = environment
  }

  /// Returns the folder and the name of the device that a command's argument means. An argument with a slash is a path,
  /// and any other argument is a name in `deviceSet`.
  ///
  /// - Throws: `.badName` if the device's name is not valid.
  package static func locate(
    _ argument: String, in deviceSet: DeviceSet
  ) throws(KeyhaulError) -> (deviceSet: DeviceSet, name: DeviceName) {
    guard argument.utf8.contains(UInt8(ascii: "/")) else { return (deviceSet, try DeviceName(argument)) }
    let path = trimmed(argument)
    let slash = path.lastIndex(of: "/")
    let name = slash.map { String(path[path.index(after: $0)...]) } ?? path
    let directory = slash.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    return (DeviceSet(path: directory, environment: deviceSet.environment), try DeviceName(name))
  }

  private static func trimmed(_ path: String) -> String {
    var path = Substring(path)
    while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
    return String(path)
  }

  private var files: DeviceFiles { environment.files }

  private func childPath(_ name: String) -> String { path == "/" ? "/\(name)" : "\(path)/\(name)" }

  private static let temporarySuffix = ".tmp"

  func directory(of name: DeviceName) -> String { childPath(name.text) }
  /// Returns the temporary path of a device that is being created or deleted. No device can have this name.
  func temporaryDirectory(of name: DeviceName) -> String { childPath(".\(name.text)\(Self.temporarySuffix)") }

  /// Returns the devices in the folder, sorted by name. The array is empty if the folder does not exist.
  ///
  /// - Throws: `.deviceIO`.
  public func devices() throws(KeyhaulError) -> [VirtualDevice] {
    var devices: [VirtualDevice] = []
    for text in try files.names(in: path) ?? [] {
      guard let name = try? DeviceName(text), try isDevice(name) else { continue }
      devices.append(VirtualDevice(name: name, directory: directory(of: name), environment: environment))
    }
    return devices
  }

  /// Returns names that are not valid UTF-8, with replacement characters. No device has such a name, so `devices()`
  /// ignores them.
  ///
  /// - Throws: `.deviceIO`.
  package func unreadableNames() throws(KeyhaulError) -> [String] {
    (try files.names(in: path) ?? []).filter { $0.unicodeScalars.contains("\u{FFFD}") && !$0.hasPrefix(".") }
  }

  /// Returns the device with a name.
  ///
  /// - Throws: `.deviceNotFound`.
  public func device(_ name: DeviceName) throws(KeyhaulError) -> VirtualDevice {
    guard try isDevice(name) else {
      throw KeyhaulError(.deviceNotFound, name.text, "\(path) has no device \(name)")
    }
    return VirtualDevice(name: name, directory: directory(of: name), environment: environment)
  }

  /// Returns whether there is a device with a name: a folder with the record and at least one other file of a device. A
  /// folder that merely contains a `device.json` is not a device.
  package func isDevice(_ name: DeviceName) throws(KeyhaulError) -> Bool {
    let directory = directory(of: name)
    guard try files.kind(of: directory) == .directory,
      try files.kind(of: DeviceFile.record.path(in: directory)) == .file
    else { return false }
    for file in [DeviceFile.hardware, .keybag, .keychain] {
      if try files.kind(of: file.path(in: directory)) == .file { return true }
    }
    return false
  }

  /// Creates a device atomically. Leftovers of an attempt that crashed are removed.
  ///
  /// - Parameters:
  ///   - name: The name, which must not be in use.
  ///   - options: The properties of the device.
  ///   - passcode: The passcode, or an empty secret if the device has none.
  ///   - fill: Adds items before the device becomes visible. If it throws, no device is created.
  /// - Returns: The new device.
  /// - Throws: `.exists` if the name is in use; `.deviceOccupied` if something else has the device's path; `.badLimit`
  ///   if the device would erase itself after fewer than 1 wrong passcode; `.deviceIO` if a file operation fails; the
  ///   errors of `fill`. The device was created nevertheless if the error's `stage` is `.afterCommit`.
  @discardableResult
  public func create(
    _ name: DeviceName, _ options: DeviceOptions = DeviceOptions(), passcode: borrowing Secret,
    filledBy fill: (DeviceSession) throws(KeyhaulError) -> Void = { (_) throws(KeyhaulError) in }
  ) throws(KeyhaulError) -> VirtualDevice {
    try makeDirectory()
    let setLock = try DeviceSetLock(path, clock: environment.clock, files)
    defer { _ = setLock }
    let directory = directory(of: name)
    try requireFree(name)
    let temporary = temporaryDirectory(of: name)
    if try files.kind(of: temporary) != nil { try files.removeTree(temporary) }
    do throws(KeyhaulError) {
      try files.makeDirectory(temporary)
      let device = VirtualDevice(name: name, directory: temporary, environment: environment)
      try device.initialize(options, passcode: passcode)
      try device.withSession(.writing, verb: "device create") { (session) throws(KeyhaulError) in
        try fill(session)
      }
      try files.syncDirectory(temporary)
      try files.rename(temporary, to: directory)
    } catch {
      try? files.removeTree(temporary)
      throw error.at(.beforeCommit)
    }
    try files.afterCommit { () throws(KeyhaulError) in try files.syncDirectory(path) }
    return VirtualDevice(name: name, directory: directory, environment: environment)
  }

  /// Checks that a name is not in use.
  ///
  /// - Throws: `.exists` if there is a device with this name, `.deviceOccupied` if anything else has its path;
  ///   `.deviceIO`.
  package func requireFree(_ name: DeviceName) throws(KeyhaulError) {
    let directory = directory(of: name)
    guard try files.kind(of: directory) != nil else { return }
    guard try isDevice(name) else {
      throw KeyhaulError(.deviceOccupied, name.text, "\(directory) exists and is not a device")
    }
    throw KeyhaulError(.exists, name.text, "\(directory) already exists")
  }

  /// Returns the names of files in a device's folder that do not belong to a device.
  ///
  /// - Throws: `.deviceIO`.
  package func unrecognizedFiles(of name: DeviceName) throws(KeyhaulError) -> [String] {
    try unrecognizedFiles(in: directory(of: name))
  }

  private func unrecognizedFiles(in directory: String) throws(KeyhaulError) -> [String] {
    (try files.names(in: directory) ?? []).filter { !DeviceFile.isDeviceFile(named: $0) }
  }

  /// Removes leftovers of killed creations and deletions, so that no keys of a deleted device remain. The
  /// leftovers stay if another process is creating or deleting a device, or if they cannot be removed.
  package func clearLeftovers() {
    let names = (try? files.names(in: path))?.filter(Self.isTemporary) ?? []
    guard !names.isEmpty, let lock = try? DeviceSetLock(path, wait: .zero, clock: environment.clock, files) else {
      return
    }
    defer { _ = lock }
    for name in names {
      let directory = childPath(name)
      guard (try? files.kind(of: directory)) == .directory, (try? unrecognizedFiles(in: directory)) == [] else {
        continue
      }
      try? files.removeTree(directory)
    }
  }

  /// Returns whether a name is the temporary name of a device that is being created or deleted.
  private static func isTemporary(_ name: String) -> Bool {
    guard name.hasPrefix("."), name.hasSuffix(temporarySuffix) else { return false }
    return DeviceName.isValid(String(name.dropFirst().dropLast(temporarySuffix.count)))
  }

  /// Deletes a device. The deletion is atomic: after a crash, invisible leftovers may remain, which the next use of the
  /// folder removes.
  ///
  /// - Throws: `.deviceNotFound`, `.deviceBusy`, `.deviceIO`, and `.deviceOccupied` if its folder contains other files.
  ///   The device was deleted nevertheless if the error's `stage` is `.afterCommit`.
  public func delete(_ name: DeviceName, wait: Duration = .zero) throws(KeyhaulError) {
    let device = try device(name)
    SessionCache.shared.close(of: device.directory)
    let lock = try DeviceFileLock.acquire(
      device.directory, device: name.text, access: .writing, command: "device delete", wait: wait,
      clock: environment.clock,
      files)
    defer { _ = lock }
    let setLock = try DeviceSetLock(path, clock: environment.clock, files)
    defer { _ = setLock }
    try rejectUnrelatedFiles(of: device)
    let temporary = temporaryDirectory(of: name)
    if try files.kind(of: temporary) != nil { try files.removeTree(temporary) }
    try files.rename(device.directory, to: temporary)
    try files.afterCommit("its remains are at \(temporary)") { () throws(KeyhaulError) in
      try files.syncDirectory(path)
      try files.removeTree(temporary)
    }
    try files.afterCommit { () throws(KeyhaulError) in try files.syncDirectory(path) }
  }

  private func rejectUnrelatedFiles(of device: VirtualDevice) throws(KeyhaulError) {
    let unrelatedFiles = try unrecognizedFiles(in: device.directory)
    guard !unrelatedFiles.isEmpty else { return }
    let verb = unrelatedFiles.count == 1 ? "is" : "are"
    throw KeyhaulError(
      .deviceOccupied, device.name.text,
      "\(HumanReadable.list(unrelatedFiles)) in \(device.directory) \(verb) not part of the device")
  }

  /// Creates the folder and its missing parents.
  private func makeDirectory() throws(KeyhaulError) {
    var missingDirectories: [String] = []
    var current = path
    while try files.kind(of: current) == nil {
      missingDirectories.append(current)
      guard let slash = current.lastIndex(of: "/"), slash != current.startIndex else { break }
      current = Self.trimmed(String(current[..<slash]))
    }
    for directory in missingDirectories.reversed() {
      do throws(KeyhaulError) {
        try files.makeDirectory(directory)
      } catch  where error.code == .exists {
        // Another process has created the folder in the meantime.
        continue
      }
    }
  }
}
