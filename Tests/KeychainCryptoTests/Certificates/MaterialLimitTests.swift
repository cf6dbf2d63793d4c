import Basics
import KeychainFormats
import TestSupport
import Testing

@testable import KeychainCrypto

@Suite("Limits for certificate chains and PKCS #12 files")
struct MaterialLimitTests {
  private func errorCode(_ body: () throws(CertificateError) -> Void) -> CertificateError.Code? {
    do throws(CertificateError) { try body() } catch { return error.code }
    return nil
  }

  @Test("A PKCS #12 file may have 1 MiB, but no more")
  func fileSize() {
    for (count, code) in [(1 << 20, CertificateError.Code.malformed), (1 << 20 + 1, .overLimit)] {
      let actual = errorCode { () throws(CertificateError) in
        _ = try PKCS12File(der: [UInt8](repeating: 0x30, count: count), password: Secret(utf8: "x"))
      }
      #expect(actual == code)
    }
  }

  @Test("A PKCS #12 file may require 10,000,000 iterations in total, but no more")
  func iterations() throws {
    var budget = IterationBudget(remaining: PKCS12File.maximumIterationCount)
    try budget.deduct(4_000_000)
    try budget.deduct(6_000_000)
    let error = #expect(throws: CertificateError.self) { try budget.deduct(1) }
    #expect(error?.code == .overLimit && error?.reason.contains("10,000,000 iterations") == true)
  }

  @Test("A chain may have 100 certificates and 100 anchors, but no more")
  func chainLength() {
    let moment = KeychainDate(secondsSinceReferenceDate: 700_000_000)
    for (certificates, anchors, code) in [
      (100, 100, CertificateError.Code.malformed), (101, 1, .overLimit), (1, 101, .overLimit),
    ] {
      let actual = errorCode { () throws(CertificateError) in
        _ = try TrustEvaluation(
          certificates: Array(repeating: [0x30, 0x00], count: certificates),
          anchors: Array(repeating: [0x30, 0x00], count: anchors), at: moment, for: .basic)
      }
      #expect(actual == code)
    }
  }
}
