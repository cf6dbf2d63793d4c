import Foundation
import KeyhaulKit
import TestSupport
import Testing

@testable import DeviceServer

/// The pairing records that clients sent, from the captured messages.
enum PairRequest {
  /// Returns a captured record. Its device certificate is for the key of another device.
  static func captured(_ index: Int) throws -> PropertyDictionary {
    let records = try #require(try ProtocolVector.file()["pairRecords"] as? [[String: Any]])
    var record: PropertyDictionary = [:]
    for key in ["HostID", "SystemBUID"] { record[key] = .string(try #require(records[index][key] as? String)) }
    for key in ["DeviceCertificate", "HostCertificate", "RootCertificate"] {
      record[key] = .data(Array(try #require(records[index][key] as? String).utf8))
    }
    return record
  }
}

@Suite("Pairing")
struct PairingTests {
  @Test("A pairing accepts its client's host and root certificates, and no other captured certificate")
  func clientCertificates() throws {
    let records = try #require(try ProtocolVector.file()["pairRecords"] as? [[String: Any]])
    let digests = try records.map { try #require($0["derSHA256"] as? [String: String]) }
    for (index, record) in records.enumerated() {
      let pairing = try #require(Pairing(record: try PairRequest.captured(index), escrowBag: [1]))
      let acceptedDigests = Set(try pairing.clientCertificates.map { String(hexadecimal: try Digest.sha256($0)) })
      let presentedName = try #require(record["presentsInTLS"] as? String)
      #expect(acceptedDigests.contains(try #require(digests[index][presentedName])))
      for (otherIndex, otherDigests) in digests.enumerated() {
        for (name, digest) in otherDigests {
          let isExpected = otherIndex == index && (name == "HostCertificate" || name == "RootCertificate")
          #expect(acceptedDigests.contains(digest) == isExpected, "\(name) of \(otherIndex)")
        }
      }
    }
  }

  @Test("A record without a certificate or with an invalid identifier is not a pairing")
  func damagedRecords() throws {
    let record = try PairRequest.captured(0)
    #expect(Pairing(record: record, escrowBag: [1]) != nil)
    for key in ["HostID", "SystemBUID", "DeviceCertificate", "HostCertificate", "RootCertificate"] {
      var damaged = record
      damaged[key] = nil
      #expect(Pairing(record: damaged, escrowBag: [1]) == nil, "\(key)")
      damaged[key] = .string("../../x")
      #expect(Pairing(record: damaged, escrowBag: [1]) == nil, "\(key)")
    }
  }

  @Test("A stored pairing is read back unchanged, and has no private key of the computer")
  func storage() throws {
    var record = try PairRequest.captured(1)
    record["RootPrivateKey"] = .data(Array("-----BEGIN PRIVATE KEY-----".utf8))
    let pairing = try #require(Pairing(record: record, escrowBag: [1, 2]))
    #expect(Pairing(stored: pairing.stored) == pairing)
    #expect(!pairing.stored.entries.contains { $0.key.stringValue?.contains("Private") == true })
  }

  @Test("The device's key is the same each time its file is read")
  func storedKey() throws {
    let file = try PairingFile()
    let bytes = try file.encoded()
    #expect(try file.encoded() == bytes)
    for _ in 0..<2 {
      let reread = try #require(PairingFile(bytes))
      #expect(reread.privateKey.withBytes { Array($0) } == file.privateKey.withBytes { Array($0) })
      #expect(try reread.encoded() == bytes)
    }
  }

  @Test("The 65th pairing removes the oldest pairing")
  func manyPairings() throws {
    var file = try PairingFile()
    for number in 0..<65 {
      var record = try PairRequest.captured(0)
      record["HostID"] = .string("HOST-\(number)")
      file.add(try #require(Pairing(record: record, escrowBag: [1])))
    }
    #expect(file.pairings.count == 64)
    #expect(file.pairings.first?.hostID == "HOST-1")
    #expect(PairingFile(try file.encoded())?.pairings == file.pairings)
  }
}
