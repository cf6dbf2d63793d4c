package import Basics
import KeychainFormats
import SystemPackage

/// Virtual devices on the wire: a usbmuxd of its own, and behind it each device's lockdown and services.
///
/// Each connection has a thread.
package final class DeviceServer: Sendable {
  private struct State {
    var channels: [Int: any ByteChannel] = [:]
    var nextNumber = 0
    var isStopping = false
    var isAccepting = false
  }

  private static let maximumConnectionCount = 32
  private static let handshakeLimit = Duration.seconds(10)
  /// The pause between checks of the accepting thread whether it should end.
  private static let acceptLimit = Duration.milliseconds(200)

  /// The devices that are served.
  package let devices: [ServedDevice]
  private let host: MultiplexerHost
  private let listener: Listener
  private let log: @Sendable (String) -> Void
  private let startThread: SecureThread.Starter
  private let state = Locked(State())

  /// The value of `USBMUXD_SOCKET_ADDRESS` with which clients find the devices.
  package var address: String { listener.address }

  /// Listens. Connections are answered once `start` was called.
  ///
  /// - Parameters:
  ///   - devices: The devices to serve, with different numbers.
  ///   - address: The address to listen on.
  ///   - startThread: Starts threads; tests pass functions that refuse.
  ///   - log: Takes lines of the log.
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
  /// - Returns: `false` if the system allows no thread for it.
  package func start() -> Bool {
    state.withLock { $0.isAccepting = true }
    let isStarted = startThread({ [self] in accept() }, { [self] in state.withLock { $0.isAccepting = false } })
    if !isStarted { state.withLock { $0.isAccepting = false } }
    return isStarted
  }

  /// Closes every connection and waits for the threads.
  ///
  /// - Parameter limit: The longest wait.
  /// - Returns: Whether every thread has ended.
  @discardableResult
  package func stop(within limit: Duration = .seconds(10)) -> Bool {
    let channels = state.withLock { state in
      state.isStopping = true
      return Array(state.channels.values)
    }
    for device in devices {
      host.notify(["MessageType": .string("Detached"), "DeviceID": .integer(Int64(device.number))])
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
        socket = try listener.socket.accept(within: Self.acceptLimit)
      } catch {
        log("cannot accept a connection: \(error.reason)")
        LockTimeout.sleepOnThread(Self.acceptLimit)
        continue
      }
      guard let socket else { continue }
      let channel = SocketChannel(socket)
      guard let number = register(channel) else {
        channel.close()
        if !isStopping { log("a connection was closed: \(Self.maximumConnectionCount) are open") }
        continue
      }
      let isStarted = startThread({ [self] in serve(channel) }, { [self] in unregister(number) })
      guard isStarted else {
        channel.close()
        unregister(number)
        log("a connection was closed: the system allows no more threads")
        continue
      }
    }
  }

  private func register(_ channel: any ByteChannel) -> Int? {
    state.withLock { state in
      guard !state.isStopping, state.channels.count < Self.maximumConnectionCount else { return nil }
      state.nextNumber += 1
      state.channels[state.nextNumber] = channel
      return state.nextNumber
    }
  }

  private func unregister(_ number: Int) { state.withLock { $0.channels[number] = nil } }

  /// Serves one connection to its end.
  ///
  /// - Parameter channel: The connection as it was accepted.
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
        if !isStopping, error.code != .closed { device.note("a connection was closed: \(error.reason)") }
      }
    } catch {
      if !isStopping, error.code != .closed { log("a connection was closed: \(error.reason)") }
    }
  }

  private func serve(
    _ reservation: ServicePorts.Reservation, of device: ServedDevice, on base: any ByteChannel
  ) throws(WireError) {
    let channel = try TLSChannel(
      over: base, showing: try device.identity(for: reservation.pairing),
      requiringOneOf: reservation.pairing.clientCertificates, within: Self.handshakeLimit)
    defer { channel.close() }
    let log = { (text: String) in device.note("\(reservation.service.rawValue): \(text)") }
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
