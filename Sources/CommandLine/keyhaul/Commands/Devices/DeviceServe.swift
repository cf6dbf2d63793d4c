import ArgumentParser
import DeviceServer
import KeyhaulKit

/// `keyhaul device serve`: serves virtual devices to backup clients. The clients can find, pair with, back up and restore
/// the devices.
struct DeviceServe: RunnableCommand {
  static let helpScreen = HelpScreen(
    sentence: "Serve virtual devices to backup clients such as idevicebackup2",
    usage: "keyhaul device serve NAME... [--listen ADDRESS] [--trust WHO]",
    examples: [
      "keyhaul device serve old-phone",
      "keyhaul device serve old-phone new-phone --listen 127.0.0.1:27015 --trust once",
    ],
    flags: ["--listen", "--trust", "--rounds"])
  static let configuration = makeConfiguration(named: "serve")
  static let formats: [OutputFormat] = [.text]

  /// The computers that may pair.
  enum Trust: String, CaseIterable, ExpressibleByArgument { case ask, once, always }

  @Argument(help: "The devices.", completion: .deviceNames) var names: [String]
  @Option(
    help: ArgumentHelp(
      "Where to listen: 127.0.0.1:PORT, [::1]:PORT or a path for a socket (default: a free port).",
      discussion: "Other users of this computer can reach a port, but not a socket at a path.", valueName: "address"))
  var listen: String?
  @Option(
    help: ArgumentHelp(
      "Which computers may pair: ask asks on the terminal, once trusts the first one, always trusts every one.",
      valueName: "who"))
  var trust = Trust.ask
  @Option(
    help: ArgumentHelp("The number of PBKDF2 iterations of encrypted backups (default 10,000,000).", valueName: "n"),
    transform: IterationCount.parseWritten)
  var rounds: IterationCount?
  @OptionGroup(title: "Options for all commands") var common: CommonOptions

  /// An event that a thread of the server reports to the command's thread.
  private enum Event: Sendable {
    case line(String)
    case question(PairingAuthorizer)
  }

  private final class EventQueue: Sendable {
    private let events = Locked<[Event]>([])

    func add(_ event: Event) { events.withLock { $0.append(event) } }

    func removeAll() -> [Event] {
      events.withLock { events in
        defer { events = [] }
        return events
      }
    }
  }

  private static let pollInterval = Duration.milliseconds(100)
  private static let maximumDeviceCount = 16

  func run(in session: Session) throws -> CommandExitStatus {
    guard !session.isJSON else {
      throw CommandError.usage("the log of the server is text", try: "leave --json out")
    }
    let address = try listenAddress()
    if trust == .ask, session.terminal() == nil {
      throw CommandError.usage(
        "nobody can be asked which computers to trust", why: session.missingTerminal, try: "--trust once")
    }
    let resolver = try SourceResolver(session)
    let devices = try names.map { (name) throws(CommandError) in try resolver.device(name) }
    guard Set(devices.map(\.device.directory)).count == devices.count else {
      throw CommandError.usage("a device is named twice", try: "name each device once")
    }
    guard devices.count <= Self.maximumDeviceCount else {
      throw CommandError.usage("at most \(Self.maximumDeviceCount) devices can be served at once")
    }
    for device in devices { try checkCanBeServed(device) }
    return try Interruption.deferringSignals { try serve(devices, at: address, in: session) }
  }

  /// Rejects a device with a version of iOS that no client backs up.
  private func checkCanBeServed(_ device: ResolvedDevice) throws {
    try device.withSession(.reading) { openDevice in
      guard openDevice.record.productVersion.canWriteBackups else {
        throw CommandError(
          .refused, "\(device.name) cannot be served",
          why: "it runs iOS \(openDevice.record.productVersion); clients back up iOS 10.2 or later",
          try: "a device created with --ios 10.2 or later")
      }
    }
  }

  private func listenAddress() throws(CommandError) -> ListenAddress {
    guard let listen else { return .loopback(port: 0, usesIPv6: false) }
    guard let address = ListenAddress(listen) else {
      throw .usage(
        "\(listen) is not an address to listen at", why: "a device is served to this computer alone",
        try: "--listen 127.0.0.1:27015, or a path such as ./phone.sock")
    }
    return address
  }

  private func serve(
    _ resolvedDevices: [ResolvedDevice], at address: ListenAddress, in session: Session
  ) throws -> CommandExitStatus {
    let events = EventQueue()
    let devices = try servedDevices(resolvedDevices, events)
    let server: DeviceServer
    do throws(ListenError) {
      server = try DeviceServer(devices, at: address) { events.add(.line($0)) }
    } catch {
      throw Self.commandError(for: error)
    }
    guard server.start() else {
      throw CommandError(.failed, "the server could not start", why: "the system allows no more threads")
    }
    defer { server.stop() }
    for device in devices { session.info("Serving \(device.device.name) (\(device.udid)). Ctrl-C stops.") }
    try session.print("export USBMUXD_SOCKET_ADDRESS=\(ShellQuoting.quote(server.address))")
    try session.flush()
    while Interruption.pending == nil {
      for event in events.removeAll() { show(event, in: session) }
      LockTimeout.sleepOnThread(Self.pollInterval)
    }
    server.stop()
    for case .line(let line) in events.removeAll() { session.info(UntrustedText.escaped(line)) }
    session.info("Stopped.")
    return .ok
  }

  /// Prepares the devices for the server. Each device reports its events to the queue.
  private func servedDevices(
    _ resolvedDevices: [ResolvedDevice], _ events: EventQueue
  ) throws(CommandError) -> [ServedDevice] {
    let policy: TrustPolicy =
      switch trust {
      case .always: .always
      case .once: .once
      case .ask: .ask { events.add(.question($0)) }
      }
    let rounds = rounds?.value ?? BackupKeybag.standardRounds
    var devices: [ServedDevice] = []
    for (index, device) in resolvedDevices.enumerated() {
      do throws(KeyhaulError) {
        devices.append(
          try ServedDevice(device.device, deviceID: index + 1, trust: policy, rounds: rounds) { events.add(.line($0)) })
      } catch {
        throw CommandError(error, device: device.name)
      }
    }
    return devices
  }

  /// Prints an event, or asks the user its question.
  private func show(_ event: Event, in session: Session) {
    switch event {
    case .line(let line): session.info(UntrustedText.escaped(line))
    case .question(let authorizer):
      let answer = try? session.terminal()?.line("Trust this computer on \(authorizer.device)? [y/N] ")
      let isTrusted = ["y", "yes"].contains(answer?.lowercased() ?? "")
      authorizer.answer(isTrusted: isTrusted)
      if isTrusted { session.info("Trusted. Repeat the client's command if it has ended.") }
    }
  }

  private static func commandError(for error: ListenError) -> CommandError {
    switch error {
    case .systemSocket(let path):
      .usage(
        "\(path) belongs to the system's own usbmuxd", why: "real devices would no longer be found",
        try: "another path, such as ./phone.sock")
    case .answered(let path):
      CommandError(.busy, "another server listens at \(path)", try: "another path, or end that server")
    case .occupied(let path):
      CommandError(.usage, "\(path) exists and is not a socket of this user", try: "another path")
    case .system(let address, let reason):
      CommandError(.failed, "cannot listen at \(address)", why: reason.reason, try: "another --listen address")
    }
  }
}
