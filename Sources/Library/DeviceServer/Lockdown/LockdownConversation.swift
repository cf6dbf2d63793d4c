import Basics
import KeychainCrypto
package import KeychainFormats

/// A conversation with lockdown, which identifies the device, pairs with computers and starts services.
///
/// A client sends one dictionary for each request, and receives one for each answer. `step(for:)` decides about a request
/// without reading or writing bytes; `run(on:)` carries out the steps.
package struct LockdownConversation {
  /// The next step after a request.
  package enum Step: Sendable {
    /// Send an answer.
    case answer(PropertyDictionary)
    /// Send an answer, then begin TLS with the computer of this pairing.
    case secure(PropertyDictionary, Pairing)
    /// Send an answer and close the connection.
    case end(PropertyDictionary)
  }

  private let device: ServedDevice
  /// The session. When it starts, the client must prove in TLS that it is paired before it can send another request.
  private var session: (identifier: String, pairing: Pairing)?

  private static let type = "com.apple.mobile.lockdown"
  private static let handshakeTimeout = Duration.seconds(10)
  private static let idleLimit = Duration.seconds(60)

  package init(_ device: ServedDevice) { self.device = device }

  /// Whether the client has proven that it is paired.
  package var isInSession: Bool { session != nil }

  /// Answers requests until the client ends the conversation.
  ///
  /// - Throws: The errors of the channel; `.malformed` for bytes that are not lockdown's protocol, `.untrusted` if the
  ///   client does not prove its pairing.
  package mutating func run(on base: any ByteChannel) throws(WireError) {
    var channel = base
    while let value = try PropertyListFrame.small.read(from: channel, within: isInSession ? nil : Self.idleLimit) {
      guard let request = value.dictionaryValue else {
        throw WireError(.malformed, "a lockdown request is not a dictionary")
      }
      switch try step(for: request) {
      case .answer(let answer): try send(answer, on: channel)
      case .secure(let answer, let pairing):
        let identity = try device.identity(for: pairing)
        try send(answer, on: channel)
        channel = try TLSChannel(
          over: channel, presenting: identity, requiringOneOf: pairing.clientCertificates, within: Self.handshakeTimeout
        )
      case .end(let answer):
        try send(answer, on: channel)
        channel.close()
        return
      }
    }
  }

  private func send(_ answer: PropertyDictionary, on channel: any ByteChannel) throws(WireError) {
    try channel.write(try PropertyListFrame.bytes(of: .dictionary(answer), as: .xml))
  }

  /// Returns the step for a request.
  ///
  /// - Throws: `.closed` if the device's files cannot be read or written.
  package mutating func step(for request: PropertyDictionary) throws(WireError) -> Step {
    let name = request["Request"]?.stringValue ?? ""
    device.log("lockdown: \(Self.summary(of: request))")
    let answer: PropertyDictionary = ["Request": .string(name)]
    switch name {
    case "QueryType": return .answer(answer.adding("Type", .string(Self.type)))
    case "GetValue": return try readValue(request, answer)
    case "SetValue", "RemoveValue": return .answer(answer.withError("SetProhibited"))
    case "Pair":
      switch try pair(request["PairRecord"]?.dictionaryValue ?? [:]) {
      case .success(let pairing): return .answer(answer.adding("EscrowBag", .data(pairing.escrowBag)))
      case .failure(let refusal): return .answer(answer.withError(refusal.error))
      }
    case "ValidatePair":
      let isPaired = try device.pairing(hostID: Self.pairRecordHostID(request) ?? "") != nil
      return .answer(isPaired ? answer : answer.withError("InvalidHostID"))
    case "Unpair":
      if let hostID = Self.pairRecordHostID(request) {
        try device.forget(hostID: hostID)
        device.log("a computer unpaired")
      }
      return .answer(answer)
    case "StartSession": return try startSession(request, answer)
    case "StopSession":
      let isActive = session != nil && request["SessionID"]?.stringValue == session?.identifier
      return isActive ? .end(answer) : .answer(answer.withError("SessionInactive"))
    case "StartService": return .answer(startService(request, answer))
    case "Goodbye": return .end(answer)
    default: return .answer(answer.withError("UnknownRequest"))
    }
  }

  private static func pairRecordHostID(_ request: PropertyDictionary) -> String? {
    request["PairRecord"]?.dictionaryValue?["HostID"]?.stringValue
  }

  private func readValue(_ request: PropertyDictionary, _ answer: PropertyDictionary) throws(WireError) -> Step {
    var answer = answer
    let (domain, key) = (request["Domain"]?.stringValue, request["Key"]?.stringValue)
    answer["Domain"] = domain.map { .string($0) }
    answer["Key"] = key.map { .string($0) }
    let values = LockdownValues(
      device.record, publicKey: try device.pairingFile().publicKey, isBackupEncrypted: device.isBackupEncrypted)
    guard let value = values.value(domain: domain, key: key, isInSession: isInSession) else {
      return .answer(answer.withError("MissingValue"))
    }
    return .answer(answer.adding("Value", value))
  }

  private mutating func startSession(
    _ request: PropertyDictionary, _ answer: PropertyDictionary
  ) throws(WireError) -> Step {
    guard session == nil else { return .answer(answer.withError("SessionActive")) }
    guard let hostID = request["HostID"]?.stringValue, let pairing = try device.pairing(hostID: hostID) else {
      return .answer(answer.withError("InvalidHostID"))
    }
    let identifier = try randomUUID()
    session = (identifier, pairing)
    return .secure(
      answer.adding("SessionID", .string(identifier)).adding("EnableSessionSSL", .boolean(true)), pairing)
  }

  /// Returns the answer to a request to start a service.
  private func startService(_ request: PropertyDictionary, _ answer: PropertyDictionary) -> PropertyDictionary {
    guard let service = request["Service"]?.stringValue else { return answer.withError("MissingService") }
    guard let session else { return answer.withError("SessionInactive") }
    let serviceAnswer = answer.adding("Service", .string(service))
    guard let serviceName = ServiceName(rawValue: service) else { return serviceAnswer.withError("InvalidService") }
    if let bag = request["EscrowBag"]?.dataValue, bag != session.pairing.escrowBag {
      return answer.withError("EscrowLocked")
    }
    guard let port = device.ports.issue(serviceName, for: session.pairing) else {
      return answer.withError("ServiceLimit")
    }
    return serviceAnswer.adding("Port", .integer(Int64(port))).adding("EnableServiceSSL", .boolean(true))
  }

  private static let maximumLoggedCharacterCount = 64

  /// Returns the name of a request, and the domain, key or service in it. No other value is logged.
  static func summary(of request: PropertyDictionary) -> String {
    ["Request", "Domain", "Key", "Service"].compactMap { request[$0]?.stringValue?.prefix(maximumLoggedCharacterCount) }
      .joined(separator: " ")
  }

  private struct Refusal: Error { let error: String }

  private func pair(_ record: PropertyDictionary) throws(WireError) -> Result<Pairing, Refusal> {
    guard let escrowBag = try? SystemRandomSource().bytes(32),
      let pairing = Pairing(record: record, escrowBag: escrowBag)
    else { return .failure(Refusal(error: "InvalidPairRecord")) }
    // The certificate must contain this device's key. Otherwise TLS could not begin.
    guard (try? device.identity(for: pairing)) != nil else { return .failure(Refusal(error: "InvalidPairRecord")) }
    switch device.trust.decide() {
    case .pending:
      device.log("a computer wants to pair; waiting for consent")
      return .failure(Refusal(error: "PairingDialogResponsePending"))
    case .refused:
      device.log("a computer was refused")
      return .failure(Refusal(error: "UserDeniedPairing"))
    case .granted: break
    }
    try device.add(pairing)
    device.log("paired with a computer")
    return .success(pairing)
  }

  private func randomUUID() throws(WireError) -> String {
    guard let bytes = try? SystemRandomSource().bytes(16), let text = UUIDText.uppercase(bytes) else {
      throw WireError(.closed, "the system has no randomness")
    }
    return text
  }
}

extension PropertyDictionary {
  fileprivate func adding(_ key: String, _ value: PropertyValue) -> PropertyDictionary {
    var changed = self
    changed[key] = value
    return changed
  }

  /// Returns the answer with an error.
  fileprivate func withError(_ error: String) -> PropertyDictionary { adding("Error", .string(error)) }
}
