import Basics
import Foundation
import KeychainServices
import TestSupport
import Testing

/// A certificate chain of the test vectors, with its expected status.
struct TrustCase: CustomTestStringConvertible, Sendable {
  let name: String
  let policy: String
  let host: String?
  let verifyDate: Date
  let certificates: [SecCertificate]
  let anchors: [SecCertificate]
  /// The status of the evaluation, 0 if the chain is trusted.
  let status: Int
  /// The number of certificates in the evaluated chain, or `nil` if it is not checked.
  let length: Int?

  var testDescription: String { name }

  init(_ vector: TestVectors) throws {
    name = try vector["name"].string
    policy = try vector["policy"].string
    host = try? vector["host"].string
    verifyDate = try #require(ISO8601DateFormatter().date(from: vector["at"].string))
    certificates = try vector["certificates"].elements.map(Self.certificate)
    anchors = try vector["anchors"].elements.map(Self.certificate)
    status = try vector["status"].integer
    length = try? vector["length"].integer
  }

  private static func certificate(_ vector: TestVectors) throws -> SecCertificate {
    try #require(SecCertificateCreateWithData(nil, Data(try vector.bytes) as CFData))
  }

  static let all = (try? TestVectors.trust()["chains"].elements.map(TrustCase.init)) ?? []

  static func named(_ name: String) throws -> TrustCase { try #require(all.first { $0.name == name }) }

  var secPolicy: SecPolicy {
    switch policy {
    case "basic": SecPolicyCreateBasicX509()
    case "client": SecPolicyCreateSSL(false, nil)
    default: SecPolicyCreateSSL(true, host.map { $0 as CFString })
    }
  }

  func trust(_ policies: CFTypeRef? = nil) throws -> SecTrust {
    var trust: SecTrust?
    let status = SecTrustCreateWithCertificates(NSArray(array: certificates), policies ?? secPolicy, &trust)
    #expect(status == errSecSuccess)
    let newTrust = try #require(trust)
    #expect(SecTrustSetAnchorCertificates(newTrust, NSArray(array: anchors)) == errSecSuccess)
    #expect(SecTrustSetVerifyDate(newTrust, verifyDate as CFDate) == errSecSuccess)
    return newTrust
  }
}

@Suite("Trust evaluation")
struct TrustTests {
  @Test("The trust vectors are complete")
  func vectors() { #expect(TrustCase.all.count == 58) }

  @Test("The chain, names, purpose, and date determine the result of a trust evaluation", arguments: TrustCase.all)
  func evaluation(of chain: TrustCase) throws {
    let trust = try chain.trust()
    var error: CFError?
    let isTrusted = SecTrustEvaluateWithError(trust, &error)
    #expect(error.map { CFErrorGetCode($0) } ?? 0 == chain.status)
    #expect(isTrusted == (chain.status == 0))
    var result = SecTrustResultType.invalid
    #expect(SecTrustGetTrustResult(trust, &result) == errSecSuccess)
    #expect(result == (isTrusted ? .unspecified : .recoverableTrustFailure))
    #expect(SecTrustEvaluate(trust, &result) == errSecSuccess)
    #expect(result == (isTrusted ? .unspecified : .recoverableTrustFailure))
    let evaluatedChain = SecTrustCopyCertificateChain(trust) as? [SecCertificate] ?? []
    #expect(evaluatedChain.first == chain.certificates.first)
    if let length = chain.length {
      #expect(evaluatedChain.count == length && SecTrustGetCertificateCount(trust) == length)
      // The chain ends with an anchor.
      #expect(evaluatedChain.last.map(chain.anchors.contains) == true)
    }
    if let error {
      #expect(CFErrorGetDomain(error) as String == NSOSStatusErrorDomain)
      #expect(
        CFErrorCopyDescription(error) as String == SecCopyErrorMessageString(OSStatus(chain.status), nil) as String?)
    }
  }

  @Test("A trust is evaluated with all of its policies, and changed policies invalidate its result")
  func policies() throws {
    let chain = try TrustCase.named("a complete chain of a server")
    let trust = try chain.trust([SecPolicyCreateBasicX509(), chain.secPolicy] as NSArray)
    #expect(SecTrustEvaluateWithError(trust, nil))
    let otherPolicy = SecPolicyCreateSSL(true, "other.example.org" as CFString)
    #expect(SecTrustSetPolicies(trust, [SecPolicyCreateBasicX509(), otherPolicy] as NSArray) == errSecSuccess)
    var result = SecTrustResultType.unspecified
    #expect(SecTrustGetTrustResult(trust, &result) == errSecSuccess && result == .invalid)
    #expect(!SecTrustEvaluateWithError(trust, nil))
    var policies: CFArray?
    #expect(SecTrustCopyPolicies(trust, &policies) == errSecSuccess && policies?.count == 2)
    let properties = SecPolicyCopyProperties(otherPolicy) as? [String: Any]
    #expect(properties?[kSecPolicyName as String] as? String == "other.example.org")
    #expect(properties?[kSecPolicyOid as String] as? String == kSecPolicyAppleSSL as String)
  }

  @Test("A trust without anchors is not trusted, since a virtual device has no root certificates")
  func noAnchors() throws {
    let chain = try TrustCase.named("a complete chain of a server")
    let trust = try chain.trust()
    var anchors: CFArray?
    #expect(SecTrustCopyCustomAnchorCertificates(trust, &anchors) == errSecSuccess && anchors?.count == 1)
    #expect(SecTrustSetAnchorCertificates(trust, nil) == errSecSuccess)
    #expect(SecTrustCopyCustomAnchorCertificates(trust, &anchors) == errSecSuccess && anchors == nil)
    var error: CFError?
    #expect(!SecTrustEvaluateWithError(trust, &error))
    #expect(try CFErrorGetCode(#require(error)) == Int(errSecCreateChainFailed))
  }

  @Test("A trust can be evaluated on a queue")
  func asynchronous() async throws {
    let trust = try TrustCase.named("another host").trust()
    let code = await withCheckedContinuation { continuation in
      SecTrustEvaluateAsyncWithError(trust, .global()) { _, isTrusted, error in
        continuation.resume(returning: isTrusted ? 0 : error.map { CFErrorGetCode($0) })
      }
    }
    #expect(code == Int(errSecHostNameMismatch))
  }

  private func leaf() throws -> SecCertificate { try #require(TrustCase.all.first?.certificates.first) }

  private func makeTrust(_ certificates: CFTypeRef) throws -> SecTrust {
    var trust: SecTrust?
    #expect(SecTrustCreateWithCertificates(certificates, nil, &trust) == errSecSuccess)
    return try #require(trust)
  }

  @Test("A trust can be created only from 1 to 100 certificates and from policies")
  func badInput() throws {
    let leaf = try leaf()
    let hundredCertificates = [SecCertificate](repeating: leaf, count: 100)
    let invalidInputs: [(certificates: CFTypeRef, policies: CFTypeRef?)] = [
      (NSArray(), nil), (NSString(string: "x"), nil), (NSArray(array: [leaf, "x"]), nil),
      (NSArray(array: hundredCertificates + [leaf]), nil), (leaf, NSArray()), (leaf, leaf),
    ]
    for (certificates, policies) in invalidInputs {
      var trust: SecTrust?
      #expect(SecTrustCreateWithCertificates(certificates, policies, &trust) == errSecParam)
      #expect(trust == nil)
    }
    #expect(try !SecTrustEvaluateWithError(makeTrust(NSArray(array: hundredCertificates)), nil))
  }

  @Test("A trust refuses values that are not anchors or policies")
  func badAnchorsAndPolicies() throws {
    let leaf = try leaf()
    let trust = try makeTrust(leaf)
    #expect(SecTrustSetAnchorCertificates(trust, ["x"] as NSArray) == errSecParam)
    #expect(SecTrustSetPolicies(trust, leaf) == errSecParam)
  }

  @Test("A trust of one certificate has the certificate's key, and no certificate at any other index")
  func singleCertificate() throws {
    let leaf = try leaf()
    let trust = try makeTrust(leaf)
    #expect(SecTrustGetCertificateAtIndex(trust, -1) == nil && SecTrustGetCertificateAtIndex(trust, 1_000) == nil)
    #expect(SecTrustCopyKey(trust) != nil && SecTrustCopyKey(trust) == SecCertificateCopyKey(leaf))
    #expect(CFGetTypeID(trust) == SecTrustGetTypeID() && SecTrustGetTypeID() != SecPolicyGetTypeID())
  }

  @Test("A final dot is not part of a host name, and an empty host name matches no certificate")
  func hostNames() throws {
    let server = try TrustCase.named("a complete chain of a server")
    let host = try #require(server.host)
    for (name, isTrusted) in [("\(host).", true), ("\(host)..", false), ("", false)] {
      let trust = try server.trust(SecPolicyCreateSSL(true, name as NSString))
      #expect(SecTrustEvaluateWithError(trust, nil) == isTrusted, "\(name)")
    }
  }

  @Test("A trust returns its verify date, and an invalid date is not trusted")
  func verifyDates() throws {
    let trust = try TrustCase.named("another host").trust()
    #expect(
      SecTrustGetVerifyTime(trust)
        == ISO8601DateFormatter().date(from: "2026-06-01T00:00:00Z")?.timeIntervalSinceReferenceDate)
    for verifyDate in [Double.infinity, -.infinity, .nan, 1e300] {
      #expect(SecTrustSetVerifyDate(trust, NSDate(timeIntervalSinceReferenceDate: verifyDate)) == errSecSuccess)
      #expect(!SecTrustEvaluateWithError(trust, nil), "\(verifyDate)")
    }
  }
}
