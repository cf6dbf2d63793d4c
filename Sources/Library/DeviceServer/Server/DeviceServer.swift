package import Basics
import KeychainFormats
import SystemPackage

/// Serves virtual devices to clients, with its own usbmuxd and with each device's lockdown and services.
///
/// Each connection has its own thread.
package final class DeviceServer: Sendable {
  private struct State {
    var channels: [Int: any ByteChannel] = [:]
    var lastConnectionID = 0
    var isStopping = false
    var isAccepting = false
  }

  private static let maximumConnectionCount = 32
  private static let handshakeTimeout = Duration.seconds(10)
  /// The interval at which the accepting thread checks whether it should end.
  private static let acceptInterval = Duration.milliseconds(200)

  /// The devices that are served.
  package let devices: [ServedDevice]
  private let host: MultiplexerHost
  private let listener: Listener
  private let log: @Sendable (String) -> Void
  private let startThread: SecureThread.Starter
  private let state = Locked(State())

  /// The value of `USBMUXD_SOCKET_ADDRESS` for clients.
  package var address: String { listener.address }

  /// Opens the listening socket. Connections are accepted after `start()`.
  ///
  /// - Parameters:
  ///   - devices: The devices to serve, with different identifiers.
  ///   - address: The address to listen on.
  ///   - startThread: Starts threads; tests pass functions that refuse.
  ///   - log: Receives the lines of the log.
  package init(
    _ devices: [ServedDevice], at address: ListenAddress,
    startThread: @escaping SecureThread.Starter = SecureThread.start,
    log: @escaping @Sendable (String) -> Void
  ) throws(ListenError) {
    self.devices = devices
    host = MultiplexerHost(devices)
    listener = try Listener(address)
    self.startThread = startThread
    self.log = log
  }

  /// Begins to accept connections.
  ///
  /// - Returns: `false` if the system refuses the thread.
  package func start() -> Bool {
    state.withLock { $0.isAccepting = true }
    let isStarted = startThread({ [self] in accept() }, { [self] in state.withLock { $0.isAccepting = false } })
    if !isStarted { state.withLock { $0.isAccepting = false } }
    return isStarted
  }

  /// Closes every connection and waits for the threads.
  ///
  /// - Parameter limit: The maximum wait.
  /// - Returns: Whether every thread has ended.
  @discardableResult
  package func stop(within limit: Duration = .seconds(10)) -> Bool {
    let channels = state.withLock { state in
      state.isStopping = true
      return Array(state.channels.values)
    }
    for device in devices {
      host.notify(["MessageType": .string("Detached"), "DeviceID": .integer(Int64(device.deviceID))])
    }
    for channel in channels { channel.close() }
    var wait = LockTimeout(atMost: limit, shouldContinue: { true })
    while state.withLock({ $0.isAccepting || !$0.channels.isEmpty }) {
      guard wait.pause(.milliseconds(20)) else { return false }
    }
    return true
  }

  private var isStopping: Bool { state.withLock { $0.isStopping } }

  private func accept() {
    while !isStopping {
      let socket: StreamSocket?
      do throws(Errno) {
        socket = try listener.socket.accept(within: Self.acceptInterval)
      } catch {
        log("cannot accept a connection: \(error.reason)")
        LockTimeout.sleepOnThread(Self.acceptInterval)
        continue
      }
      guard let socket else { continue }
      let channel = SocketChannel(socket)
      guard let connectionID = register(channel) else {
        channel.close()
        if !isStopping { log("a connection was closed: \(Self.maximumConnectionCount) are open") }
        continue
      }
      let isStarted = startThread({ [self] in serve(channel) }, { [self] in unregister(connectionID) })
      if !isStarted {
        channel.close()
        unregister(connectionID)
        log("a connection was closed: the system allows no more threads")
      }
    }
  }

  private func register(_ channel: any ByteChannel) -> Int? {
    state.withLock { state in
      guard !state.isStopping, state.channels.count < Self.maximumConnectionCount else { return nil }
      state.lastConnectionID += 1
      state.channels[state.lastConnectionID] = channel
      return state.lastConnectionID
    }
  }

  private func unregister(_ connectionID: Int) { state.withLock { $0.channels[connectionID] = nil } }

  /// Serves one connection to its end.
  ///
  /// - Parameter channel: The accepted connection, without TLS.
  package func serve(_ channel: any ByteChannel) {
    defer { channel.close() }
    do throws(WireError) {
      guard let destination = try MultiplexerConversation(host).run(on: channel, logging: log) else { return }
      let device = destination.device
      do throws(WireError) {
        guard let reservation = destination.reservation else {
          var conversation = LockdownConversation(device)
          return try conversation.run(on: channel)
        }
        try serve(reservation, of: device, on: channel)
      } catch {
        if !isStopping, error.code != .closed { device.log("a connection was closed: \(error.reason)") }
      }
    } catch {
      if !isStopping, error.code != .closed { log("a connection was closed: \(error.reason)") }
    }
  }

  private func serve(
    _ reservation: ServicePorts.Reservation, of device: ServedDevice, on connection: any ByteChannel
  ) throws(WireError) {
    let channel = try TLSChannel(
      over: connection, presenting: try device.identity(for: reservation.pairing),
      requiringOneOf: reservation.pairing.clientCertificates, within: Self.handshakeTimeout)
    defer { channel.close() }
    let log = { (text: String) in device.log("\(reservation.service.rawValue): \(text)") }
    switch reservation.service {
    case .backup: try BackupConversation(device, on: channel).run()
    case .diagnostics:
      try PropertyListServices.run(on: channel, logging: log) { (request) throws(WireError) in
        let (answer, isDone) = PropertyListServices.diagnostics(request)
        return ([answer], isDone)
      }
    case .fileConduit: try FileConduit(device.sharedFiles).run(on: channel, logging: log)
    case .installationProxy:
      try PropertyListServices.run(on: channel, logging: log) { (request) throws(WireError) in
        (PropertyListServices.installationProxy(request, applications: device.applications), false)
      }
    case .notificationProxy: try NotificationProxy(device).run(on: channel)
    case .springBoard:
      try PropertyListServices.run(on: channel, logging: log) { (request) throws(WireError) in
        ([PropertyListServices.springBoard(request)], false)
      }
    }
  }
}
