import Basics
import DeviceServer
public import KeyhaulTesting
import VirtualDevice

extension Phone {
  /// Serves the phone to backup clients, such as idevicebackup2, while the closure runs. Every client may pair.
  ///
  /// The clients are other processes. To find the phone, they need its address in the environment variable
  /// `USBMUXD_SOCKET_ADDRESS`:
  ///
  /// ```swift
  /// try phone.serve { address in
  ///   let tool = Process()
  ///   tool.environment = ["USBMUXD_SOCKET_ADDRESS": address]
  ///   …
  /// }
  /// ```
  ///
  /// - Parameter body: The closure that runs the clients. It receives the phone's address.
  /// - Returns: The closure's result, after all connections are closed.
  /// - Throws: `ServingError` if the phone cannot be served, for example because it is already served; and the errors
  ///   of the closure.
  @discardableResult
  public func serve<Result>(_ body: (_ address: String) throws -> Result) throws -> Result {
    let served: ServedDevice
    let server: DeviceServer
    do throws(KeyhaulError) {
      // With a single iteration, tests do not wait for the derivation of a backup password's key.
      served = try ServedDevice(device, deviceID: 1, trust: .always, rounds: 1) { _ in }
    } catch {
      throw ServingError(reason: "\(error.summary): \(error.reason)")
    }
    do throws(ListenError) {
      server = try DeviceServer([served], at: .loopback(port: 0, usesIPv6: false)) { _ in }
    } catch {
      throw ServingError(reason: "no port of 127.0.0.1 is free")
    }
    guard server.start() else { throw ServingError(reason: "the system allows no more threads") }
    defer { server.stop() }
    return try body(server.address)
  }
}

/// A failure to serve a phone.
public struct ServingError: Error, Sendable, CustomStringConvertible {
  /// The reason for the failure.
  public let reason: String

  public var description: String { "the phone cannot be served: \(reason)" }
}
