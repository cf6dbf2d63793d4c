import Basics
import COpenSSL
import Testing

@testable import KeychainCrypto

/// An OpenSSL client with its own certificate and without a socket.
private final class TLSClient {
  let certificate: [UInt8]
  private let context: OpaquePointer
  private let connection: OpaquePointer
  private let input: OpaquePointer
  private let output: OpaquePointer

  init(_ key: KeyMaterial, showsCertificate: Bool = true, highestVersion: Int32 = TLS1_3_VERSION) throws {
    let certificate = try makeCertificate(of: key)
    let context = try #require(SSL_CTX_new(TLS_client_method()))
    SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, Int(highestVersion), nil)
    if showsCertificate {
      let certificateStatus = SSL_CTX_use_certificate_ASN1(context, Int32(certificate.count), certificate)
      let keyStatus = key.externalRepresentation.withBytes { bytes in
        SSL_CTX_use_PrivateKey_ASN1(
          EVP_PKEY_RSA, context, bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
      }
      #expect(certificateStatus == 1 && keyStatus == 1)
    }
    let connection = try #require(SSL_new(context))
    let input = try #require(BIO_new(BIO_s_mem()))
    let output = try #require(BIO_new(BIO_s_mem()))
    SSL_set_bio(connection, input, output)
    SSL_set_connect_state(connection)
    (self.certificate, self.context, self.connection) = (certificate, context, connection)
    (self.input, self.output) = (input, output)
  }

  deinit {
    SSL_free(connection)
    SSL_CTX_free(context)
  }

  var isComplete: Bool { SSL_get_state(connection) == TLS_ST_OK }
  var version: Int32 { SSL_version(connection) }

  func handshake() {
    _ = SSL_do_handshake(connection)
    ERR_clear_error()
  }

  func receive(_ bytes: [UInt8]) { _ = BIO_write(input, bytes, Int32(bytes.count)) }

  func takeOutput() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = BIO_read(output, &bytes, Int32(bytes.count))
    return Array(bytes.prefix(max(0, Int(count))))
  }

  func write(_ bytes: [UInt8]) { _ = SSL_write(connection, bytes, Int32(bytes.count)) }

  func read() -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    let count = SSL_read(connection, &bytes, Int32(bytes.count))
    return Array(bytes.prefix(max(0, Int(count))))
  }
}

/// Creates a self-signed certificate with empty names, like the certificates of backup clients.
private func makeCertificate(of key: KeyMaterial) throws -> [UInt8] {
  let handle = try #require(
    key.externalRepresentation.withBytes { bytes in
      var position = bytes.bindMemory(to: UInt8.self).baseAddress
      return d2i_PrivateKey(EVP_PKEY_RSA, nil, &position, bytes.count)
    })
  defer { EVP_PKEY_free(handle) }
  let certificate = try #require(X509_new())
  defer { X509_free(certificate) }
  // The number 2 stands for X.509 version 3.
  X509_set_version(certificate, 2)
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1)
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0)
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86_400)
  X509_set_pubkey(certificate, handle)
  #expect(X509_sign(certificate, handle, EVP_sha256()) > 0)
  return try X509Certificate(adopting: try #require(X509_dup(certificate))).der()
}

@Suite("TLS as a server")
struct TLSTests {
  private static let generatedServerKey = Result { try KeyMaterial.generateRSA(sizeInBits: 2048) }
  private static let generatedClientKey = Result { try KeyMaterial.generateRSA(sizeInBits: 2048) }
  private static let generatedOtherKey = Result { try KeyMaterial.generateRSA(sizeInBits: 2048) }

  private let serverKey: KeyMaterial
  private let clientKey: KeyMaterial
  private let otherKey: KeyMaterial

  init() throws {
    serverKey = try Self.generatedServerKey.get()
    clientKey = try Self.generatedClientKey.get()
    otherKey = try Self.generatedOtherKey.get()
  }

  private func makeServer() throws -> TLSConnection {
    try TLSConnection(
      TLSIdentity(certificate: makeCertificate(of: serverKey), privateKey: serverKey.externalRepresentation))
  }

  /// Carries out a handshake.
  private func connect(_ client: TLSClient, to server: TLSConnection) throws {
    for _ in 0..<10 {
      client.handshake()
      server.receive(client.takeOutput())
      let isComplete = try server.continueHandshake()
      client.receive(server.takeOutput())
      if isComplete, client.isComplete { return }
    }
    Issue.record("the handshake does not end")
  }

  @Test(
    "A client with a paired certificate exchanges bytes in both directions",
    arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
  func conversation(version: Int32) throws {
    let client = try TLSClient(clientKey, highestVersion: version)
    let server = try makeServer()
    try connect(client, to: server)
    #expect(client.version == version)
    try server.requirePeer(among: [[1, 2, 3], client.certificate])

    client.write(Array("request".utf8))
    server.receive(client.takeOutput())
    guard case .bytes(let request) = try server.read(upTo: 100) else {
      Issue.record("no bytes")
      return
    }
    #expect(request == Array("request".utf8))
    guard case .needsInput = try server.read(upTo: 100) else {
      Issue.record("unexpected bytes")
      return
    }

    let response = [UInt8](repeating: 7, count: 50_000)
    try server.write(response)
    client.receive(server.takeOutput())
    var received: [UInt8] = []
    while received.count < response.count {
      let bytes = client.read()
      guard !bytes.isEmpty else { break }
      received += bytes
    }
    #expect(received == response)
  }

  @Test("A client is refused if its certificate is not in the list, even if a certificate in the list has the same key")
  func otherCertificate() throws {
    let client = try TLSClient(clientKey)
    let server = try makeServer()
    try connect(client, to: server)
    let otherCertificate = try makeCertificate(of: otherKey)
    let secondCertificate = try makeCertificate(of: clientKey)
    #expect(throws: TLSError.self) { try server.requirePeer(among: [otherCertificate]) }
    #expect(throws: TLSError.self) { try server.requirePeer(among: []) }
    // A second certificate for the same key differs, unless both certificates are made in the same second.
    if secondCertificate != client.certificate {
      #expect(throws: TLSError.self) { try server.requirePeer(among: [secondCertificate]) }
    }
    try server.requirePeer(among: [client.certificate])
  }

  @Test("A client without a certificate, and a client that speaks only TLS 1.1, are refused in the handshake")
  func refusedHandshakes() throws {
    for client in [
      try TLSClient(clientKey, showsCertificate: false), try TLSClient(clientKey, highestVersion: TLS1_1_VERSION),
    ] {
      let server = try makeServer()
      #expect(throws: TLSError.self) { try connect(client, to: server) }
    }
  }

  @Test("Bytes that are not TLS are rejected")
  func otherProtocol() throws {
    let server = try makeServer()
    server.receive(Array("GET / HTTP/1.1\r\n\r\n".utf8))
    #expect(throws: TLSError.self) { try server.continueHandshake() }
  }

  @Test("Bytes that were changed on their way are rejected")
  func changedBytes() throws {
    let client = try TLSClient(clientKey)
    let server = try makeServer()
    try connect(client, to: server)
    client.write(Array("request".utf8))
    var bytes = client.takeOutput()
    bytes[bytes.count - 1] ^= 1
    server.receive(bytes)
    #expect(throws: TLSError.self) { try server.read(upTo: 100) }
  }

  @Test("A private key of another certificate and a truncated certificate are rejected")
  func invalidIdentities() throws {
    let certificate = try makeCertificate(of: clientKey)
    #expect(throws: TLSError.self) {
      try TLSIdentity(certificate: certificate, privateKey: otherKey.externalRepresentation)
    }
    #expect(throws: TLSError.self) {
      try TLSIdentity(certificate: Array(certificate.dropLast()), privateKey: clientKey.externalRepresentation)
    }
  }
}
