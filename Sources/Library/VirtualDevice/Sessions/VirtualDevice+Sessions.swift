extension VirtualDevice {
  /// Holds the device and finishes what a crash has left unfinished.
  ///
  /// - Parameters:
  ///   - access: Reading beside others, or writing alone.
  ///   - verb: What the holder is doing ("keyhaul restore"), told to whoever finds the device busy.
  ///   - wait: How long to wait where another process holds it.
  /// - Throws: `.busy`, `.notFound`, `.damaged`, `.unsupportedVersion`, `.io`.
  public func openSession(
    _ access: DeviceAccess, verb: String, wait: Duration = .zero
  ) throws(VirtualDeviceError) -> DeviceSession {
    try DeviceSession(self, access, verb: verb, wait: wait)
  }

  /// Holds the device for the length of the closure. What it changed is on the disk when this returns.
  public func withSession<Value>(
    _ access: DeviceAccess, verb: String, wait: Duration = .zero,
    _ body: (DeviceSession) throws(VirtualDeviceError) -> Value
  ) throws(VirtualDeviceError) -> Value {
    let session = try openSession(access, verb: verb, wait: wait)
    defer { session.end() }
    let value = try body(session)
    try session.finish()
    return value
  }
}
