public import Basics
public import KeychainCrypto
import KeychainFormats

/// A directory of virtual devices, one directory each.
public struct DeviceHome: Sendable {
  /// The directory's path, without a slash at its end.
  public let path: String
  /// The environment of every device in it.
  public let environment: DeviceEnvironment

  /// Creates a home in a directory.
  ///
  /// - Parameters:
  ///   - path: Need not exist; it is made, for its owner alone, with the first device.
  ///   - environment: The time, the randomness and the cost of a passcode for the devices in it.
  public init(path: String, environment: DeviceEnvironment = .system) {
    self.path = Self.trimmed(path)
    self.environment = environment
  }

  /// The home and the name that an argument means: a path where it has a slash, else a name under `home`.
  ///
  /// - Throws: `.badName`.
  public static func locate(
    _ argument: String, home: DeviceHome
  ) throws(KeyhaulError) -> (home: DeviceHome, name: DeviceName) {
    guard argument.utf8.contains(UInt8(ascii: "/")) else { return (home, try DeviceName(argument)) }
    let path = trimmed(argument)
    let end = path.lastIndex(of: "/")
    let name = end.map { String(path[path.index(after: $0)...]) } ?? path
    let directory = end.map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
    return (DeviceHome(path: directory, environment: home.environment), try DeviceName(name))
  }

  private static func trimmed(_ path: String) -> String {
    var path = Substring(path)
    while path.utf8.count > 1, path.hasSuffix("/") { path.removeLast() }
    return String(path)
  }

  private var files: DeviceFiles { environment.files }

  func directory(of name: DeviceName) -> String { path == "/" ? "/\(name)" : "\(path)/\(name)" }
  /// Where a device is while it is made or taken apart; no device can have this name.
  func temporaryDirectory(of name: DeviceName) -> String { path == "/" ? "/.\(name).tmp" : "\(path)/.\(name).tmp" }

  /// The devices in the directory, by name; none where the directory is not there.
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

  /// What stands in the directory under names that are no UTF-8, each byte that is none replaced. No device has such a name,
  /// so that none of them is among `devices()`, and nothing is looked for in them.
  ///
  /// - Throws: `.deviceIO`.
  public func unreadableNames() throws(KeyhaulError) -> [String] {
    (try files.names(in: path) ?? []).filter { $0.unicodeScalars.contains("\u{FFFD}") && !$0.hasPrefix(".") }
  }

  /// The device of this name.
  ///
  /// - Throws: `.deviceNotFound`.
  public func device(_ name: DeviceName) throws(KeyhaulError) -> VirtualDevice {
    guard try isDevice(name) else {
      throw KeyhaulError(.deviceNotFound, name.text, "\(path) has no device \(name)")
    }
    return VirtualDevice(name: name, directory: directory(of: name), environment: environment)
  }

  /// Whether there is a device of this name: a directory with the record and at least one other file of a device, so
  /// that a directory that merely has a `device.json` is never taken for one.
  public func isDevice(_ name: DeviceName) throws(KeyhaulError) -> Bool {
    let directory = directory(of: name)
    guard try files.kind(of: directory) == .directory,
      try files.kind(of: DeviceFile.record.path(in: directory)) == .file
    else { return false }
    for file in [DeviceFile.hardware, .keybag, .keychain] {
      if try files.kind(of: file.path(in: directory)) == .file { return true }
    }
    return false
  }

  /// Makes a device. It is there as a whole or not at all; what a crash left of an earlier attempt is removed.
  ///
  /// - Parameters:
  ///   - name: The name, which is free in the home.
  ///   - options: The identity, the apps and the habits of the device.
  ///   - passcode: Empty for a device without one.
  ///   - fill: Puts items on the device before it appears.
  /// - Throws: `.exists`, `.deviceOccupied`, `.deviceIO`, and what `fill` throws; of stage `afterCommit` where the device is there
  ///   all the same.
  @discardableResult
  public func create(
    _ name: DeviceName, _ options: DeviceOptions = DeviceOptions(), passcode: borrowing Secret,
    filledBy fill: (DeviceSession) throws(KeyhaulError) -> Void = { (_) throws(KeyhaulError) in }
  ) throws(KeyhaulError) -> VirtualDevice {
    try makeHome()
    let hold = try HomeLock(path, clock: environment.clock, files)
    defer { _ = hold }
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
    try files.committed { () throws(KeyhaulError) in try files.syncDirectory(path) }
    return VirtualDevice(name: name, directory: directory, environment: environment)
  }

  /// - Throws: `.exists` where there is a device of this name, `.deviceOccupied` where anything else is in its place; `.deviceIO`.
  package func requireFree(_ name: DeviceName) throws(KeyhaulError) {
    let directory = directory(of: name)
    guard try files.kind(of: directory) != nil else { return }
    guard try isDevice(name) else {
      throw KeyhaulError(.deviceOccupied, name.text, "\(directory) exists and is not a device")
    }
    throw KeyhaulError(.exists, name.text, "\(directory) already exists")
  }

  /// What lies in a device's directory and is not a file of a device, by name.
  ///
  /// - Throws: `.deviceIO`.
  package func foreignNames(of name: DeviceName) throws(KeyhaulError) -> [String] {
    try foreignNames(in: directory(of: name))
  }

  private func foreignNames(in directory: String) throws(KeyhaulError) -> [String] {
    (try files.names(in: directory) ?? []).filter { !DeviceFile.isOne($0) }
  }

  /// Removes what creations and deletions that were killed have left in the directory: a device that is not there keeps no
  /// keys. Where another process makes or deletes one, or where something cannot be removed, it stays.
  package func clearLeftovers() {
    let names = (try? files.names(in: path))?.filter(Self.isTemporary) ?? []
    guard !names.isEmpty, let hold = try? HomeLock(path, wait: .zero, clock: environment.clock, files) else { return }
    defer { _ = hold }
    for name in names {
      let directory = path == "/" ? "/\(name)" : "\(path)/\(name)"
      guard (try? files.kind(of: directory)) == .directory, (try? foreignNames(in: directory)) == [] else { continue }
      try? files.removeTree(directory)
    }
  }

  /// Whether it is the name that a device has while it is made or taken apart.
  private static func isTemporary(_ name: String) -> Bool {
    name.hasPrefix(".") && name.hasSuffix(".tmp") && DeviceName.isValid(String(name.dropFirst().dropLast(4)))
  }

  /// Removes a device for good. From one moment on it is no longer there; a crash after it leaves rests that no one lists
  /// and that go with the next run of anything in the home.
  ///
  /// - Throws: `.deviceNotFound`, `.deviceBusy`, `.deviceIO`, and `.deviceOccupied` where more than a device is in its directory; of stage
  ///   `afterCommit` where it is no longer there all the same.
  public func delete(_ name: DeviceName, wait: Duration = .zero) throws(KeyhaulError) {
    let device = try device(name)
    KeptSessions.ofThisProcess.letGo(of: device.directory)
    let lock = try DeviceFileLock.acquire(
      device.directory, device: name.text, access: .writing, verb: "device delete", wait: wait,
      clock: environment.clock,
      files)
    defer { _ = lock }
    let hold = try HomeLock(path, clock: environment.clock, files)
    defer { _ = hold }
    let foreign = try foreignNames(of: name)
    guard foreign.isEmpty else {
      throw KeyhaulError(
        .deviceOccupied, name.text,
        "\(HumanReadable.list(foreign)) in \(device.directory) \(foreign.count == 1 ? "is" : "are") not part of the device"
      )
    }
    let temporary = temporaryDirectory(of: name)
    if try files.kind(of: temporary) != nil { try files.removeTree(temporary) }
    try files.rename(device.directory, to: temporary)
    try files.committed("its remains are at \(temporary)") { () throws(KeyhaulError) in
      try files.syncDirectory(path)
      try files.removeTree(temporary)
    }
    try files.committed { () throws(KeyhaulError) in try files.syncDirectory(path) }
  }

  /// Makes the directory and those above it that are missing.
  private func makeHome() throws(KeyhaulError) {
    var missing: [String] = []
    var current = path
    while try files.kind(of: current) == nil {
      missing.append(current)
      guard let slash = current.lastIndex(of: "/"), slash != current.startIndex else { break }
      current = Self.trimmed(String(current[..<slash]))
    }
    for directory in missing.reversed() {
      do throws(KeyhaulError) {
        try files.makeDirectory(directory)
      } catch  where error.code == .exists {
        // Another process was faster; the directory is what matters.
        continue
      }
    }
  }
}
