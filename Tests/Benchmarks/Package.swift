// swift-tools-version: 6.2
import PackageDescription

/// Shows Keyhaul's `package` declarations to the targets here. Their package's name is the name of its folder.
let inside: [SwiftSetting] = [
  .unsafeFlags([
    "-package-name",
    Context.packageDirectory.split(separator: "/").dropLast(2).last.map {
      String($0.lowercased().map { $0.isLetter || $0.isNumber ? $0 : "_" })
    } ?? "",
  ])
]

/// Figures of the library and the program, as ratios within one run. A package of its own, so that the product keeps
/// few dependencies and no test depends on a time.
let package = Package(
  name: "keyhaul-benchmarks",
  platforms: [.macOS(.v15)],
  dependencies: [.package(name: "keyhaul", path: "../..")],
  targets: [
    .systemLibrary(name: "COpenSSLForComparison", pkgConfig: "libcrypto"),
    .systemLibrary(name: "CSQLiteForFixtures", pkgConfig: "sqlite3"),
    .executableTarget(
      name: "Benchmarks",
      dependencies: [
        "COpenSSLForComparison", "CSQLiteForFixtures", .product(name: "KeyhaulKit", package: "keyhaul"),
        .product(name: "KeychainServices", package: "keyhaul"),
      ], packageAccess: false, swiftSettings: inside),
    .executableTarget(
      name: "Contention", dependencies: [.product(name: "KeyhaulKit", package: "keyhaul")], packageAccess: false,
      swiftSettings: inside),
  ],
  swiftLanguageModes: [.v6]
)
