import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import DeviceServer

@Suite("Lockdown")
struct LockdownTests {
  private func answer(
    _ conversation: inout LockdownConversation, _ request: PropertyDictionary
  ) throws -> PropertyDictionary {
    switch try conversation.step(for: request) {
    case .answer(let answer), .secure(let answer, _), .end(let answer): answer
    }
  }

  @Test("Before a session, a client can read only the values that pairing requires")
  func openValues() throws {
    let phone = try ServedPhone()
    var lockdown = LockdownConversation(phone.served)
    let values = try answer(&lockdown, ["Request": .string("GetValue")])["Value"]?.dictionaryValue
    let keys = Set(values?.entries.compactMap(\.key.stringValue) ?? [])
    #expect(
      keys == [
        "BuildVersion", "DeviceClass", "DevicePublicKey", "ProductType", "ProductVersion", "UniqueDeviceID",
        "WiFiAddress",
      ])
    for key in ["SerialNumber", "DeviceName"] {
      let answer = try answer(&lockdown, ["Request": .string("GetValue"), "Key": .string(key)])
      #expect(answer["Error"] == .string("MissingValue"))
    }
    let domain = try answer(
      &lockdown, ["Request": .string("GetValue"), "Domain": .string("com.apple.mobile.backup")])
    #expect(domain["Error"] == .string("MissingValue"))
  }

  @Test("A client can read the device's public key in PEM before a session")
  func devicePublicKey() throws {
    let phone = try ServedPhone()
    var lockdown = LockdownConversation(phone.served)
    let answer = try answer(&lockdown, ["Request": .string("GetValue"), "Key": .string("DevicePublicKey")])
    let publicKey = String(decoding: answer["Value"]?.dataValue ?? [], as: UTF8.self)
    #expect(publicKey.hasPrefix("-----BEGIN RSA PUBLIC KEY-----\n"))
    // A key of 2,048 bits.
    #expect(publicKey.utf8.count == 426)
  }

  @Test("Requests without a session get the captured errors")
  func errors() throws {
    let phone = try ServedPhone()
    var lockdown = LockdownConversation(phone.served)
    func request(_ name: String) throws -> PropertyDictionary {
      let channel = ScriptedChannel(try ProtocolVector.named(name).bytes)
      return try #require(try PropertyListFrame.small.read(from: channel, within: nil)?.dictionaryValue)
    }
    func isEqual(_ answer: PropertyDictionary, toCaptured name: String) throws -> Bool {
      ProtocolVector.comparable(of: .dictionary(answer)) == (try ProtocolVector.named(name).decoded)
    }
    let queryType = try answer(&lockdown, request("lockdown.QueryType.request"))
    #expect(try isEqual(queryType, toCaptured: "lockdown.QueryType.answer"))
    let startSession = try answer(&lockdown, request("lockdown.StartSession.pmd.request"))
    #expect(try isEqual(startSession, toCaptured: "lockdown.StartSession.unknownHost.answer"))
    let cases: [(request: PropertyDictionary, error: String)] = [
      (try request("lockdown.StartService.request"), "SessionInactive"),
      (try request("lockdown.StopSession.request"), "SessionInactive"),
      (["Request": .string("Frobnicate")], "UnknownRequest"),
      (["Request": .string("SetValue")], "SetProhibited"),
    ]
    for (request, error) in cases {
      let answer = try answer(&lockdown, request)
      #expect(answer["Error"] == .string(error), "\(request)")
    }
  }

  @Test("The log has a line for each request, with the names in the request and no other values")
  func log() throws {
    let phone = try ServedPhone()
    var lockdown = LockdownConversation(phone.served)
    _ = try answer(
      &lockdown,
      [
        "Request": .string("GetValue"), "Domain": .string("com.apple.mobile.backup"), "Key": .string("WillEncrypt"),
      ])
    _ = try answer(
      &lockdown,
      ["Request": .string("StartService"), "Service": .string("com.apple.afc"), "EscrowBag": .data([1, 2, 3])])
    _ = try answer(
      &lockdown, ["Request": .string("SetValue"), "Key": .string("k"), "Value": .string("a secret of the client")])
    _ = try answer(&lockdown, ["Request": .string(String(repeating: "a", count: 100_000))])
    _ = try answer(&lockdown, [:])
    #expect(
      phone.lines.all == [
        "phone: lockdown: GetValue com.apple.mobile.backup WillEncrypt", "phone: lockdown: StartService com.apple.afc",
        "phone: lockdown: SetValue k", "phone: lockdown: \(String(repeating: "a", count: 64))", "phone: lockdown: ",
      ])
  }

  @Test("A pairing with a certificate for another device's key is refused")
  func otherCertificate() throws {
    let phone = try ServedPhone()
    var lockdown = LockdownConversation(phone.served)
    let answer = try answer(
      &lockdown, ["Request": .string("Pair"), "PairRecord": .dictionary(try PairRequest.captured(0))])
    #expect(answer["Error"] == .string("InvalidPairRecord"))
    #expect(try phone.served.pairingFile().pairings.isEmpty)
  }

  @Test("The user's consent applies to one pairing, and a refusal to one request")
  func consent() {
    let prompts = LineRecorder()
    let authorizer = PairingAuthorizer(device: "phone", .ask { prompts.add($0.device) })
    #expect(authorizer.decide() == .pending)
    #expect(authorizer.decide() == .pending)
    #expect(prompts.all == ["phone"])
    authorizer.answer(isTrusted: true)
    #expect(authorizer.decide() == .granted)
    #expect(authorizer.decide() == .pending)
    authorizer.answer(isTrusted: false)
    #expect(authorizer.decide() == .refused)
    #expect(authorizer.decide() == .pending)
    #expect(prompts.all.count == 3)
  }

  @Test("A device that trusts only one client refuses all later clients")
  func consentForOneClient() {
    let authorizer = PairingAuthorizer(device: "phone", .once)
    #expect([authorizer.decide(), authorizer.decide(), authorizer.decide()] == [.granted, .refused, .refused])
  }

  @Test("An issued port can be claimed once, and up to 64 ports can be unused until their pairing is removed")
  func ports() throws {
    let ports = ServicePorts()
    let pairing = try #require(Pairing(record: try PairRequest.captured(0), escrowBag: [1]))
    let port = try #require(ports.issue(.backup, for: pairing))
    // The dynamic ports.
    #expect((49152...65535).contains(port))
    #expect(ports.claim(port: port + 1) == nil)
    #expect(ports.claim(port: port)?.service == .backup)
    #expect(ports.claim(port: port) == nil)
    for _ in 0..<64 { #expect(ports.issue(.backup, for: pairing) != nil) }
    #expect(ports.issue(.backup, for: pairing) == nil)
    ports.revoke(hostID: pairing.hostID)
    #expect(ports.issue(.backup, for: pairing) != nil)
  }

  @Test("Eight connections may wait for events, and a ninth is refused until one of them ends")
  func listeners() throws {
    let host = MultiplexerHost([try ServedPhone().served])
    let channels = (0..<9).map { _ in ScriptedChannel() }
    #expect(channels.map(host.addListener) == [Bool](repeating: true, count: 8) + [false])
    host.notify(["MessageType": .string("Detached")])
    #expect(channels.map { $0.output.isEmpty } == [Bool](repeating: false, count: 8) + [true])
    host.removeListener(channels[0])
    #expect(host.addListener(channels[8]))
  }

  @Test("Removing a pairing from a device also removes the computer's record of the pairing")
  func forgetting() throws {
    let phone = try ServedPhone()
    let pairing = try #require(Pairing(record: try PairRequest.captured(0), escrowBag: [1]))
    try phone.served.add(pairing)
    let host = MultiplexerHost([phone.served])
    // A frame begins with its length in four bytes.
    let record = try PropertyListFrame.bytes(of: .dictionary(["HostID": .string(pairing.hostID)]), as: .binary)
      .dropFirst(4)
    #expect(
      try host.response(to: .savePairRecord(udid: phone.served.udid, Array(record))) == MultiplexerResult.done.answer)
    #expect(try host.response(to: .readPairRecord(udid: phone.served.udid))["PairRecordData"] == .data(Array(record)))
    try phone.served.forget(hostID: pairing.hostID)
    #expect(try phone.served.pairing(hostID: pairing.hostID) == nil)
    #expect(
      try host.response(to: .readPairRecord(udid: phone.served.udid)) == MultiplexerResult.noDevice.answer)
  }

  @Test("Only the owner can read the files of a served device, and an erase removes them")
  func files() throws {
    let phone = try ServedPhone()
    let pairing = try #require(Pairing(record: try PairRequest.captured(0), escrowBag: [1]))
    try phone.served.add(pairing)
    try phone.served.claim.replaceBackupPassword(Secret(utf8: "horse"))
    let directory = phone.served.device.directory
    for name in ["pairings.plist", "backup-password", "serving"] {
      let attributes = try FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")
      #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
    }
    try phone.served.device.withSession(.writing, verb: "erase") { (session) throws(KeyhaulError) in
      try session.erase()
    }
    #expect(try phone.served.claim.pairings() == nil)
    let hasPassword = try phone.served.claim.backupPassword() != nil
    #expect(!hasPassword)
  }

  @Test("A device is served by one process at a time")
  func secondServer() throws {
    let phone = try ServedPhone()
    #expect(throws: KeyhaulError.self) {
      try ServedDevice(phone.served.device, deviceID: 1, trust: .always, rounds: 1) { _ in }
    }
  }
}
