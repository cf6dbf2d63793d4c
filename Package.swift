// swift-tools-version: 6.2
import PackageDescription

// Development builds: environment variables and unsafe flags. A release has fixed values in place of these lines, so that a package that
// uses Keyhaul by version gets the same build in every environment (packaging/make_release_tag.py).
let environment = Context.environment
let optimizesSwift: [SwiftSetting] = [.unsafeFlags(["-O"])]
let optimizesC: [CSetting] = [.unsafeFlags(["-O2"])]
let importsSecurity: [SwiftSetting] = [.unsafeFlags(["-Xfrontend", "-import-module", "-Xfrontend", "Security"])]
// End of development builds.

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error, .when(configuration: .debug)),
]

/// What the package is built for: `tests`, `portable` (the program of `make -C packaging portable`), `docs` or `fuzzing`; otherwise for
/// use.
let purpose = environment["KEYHAUL_BUILD"]

/// Targets that read bytes one by one. The tests optimize them in debug builds too, and then take four fifths of the time.
let optimizedParts =
  purpose == "tests" ? ["CKeyhaul", "Basics", "KeychainFormats", "KeychainCrypto"] : []

/// The targets whose tests are built, or `nil` for all. `make sanitize` and `make coverage` build a few.
let testedParts = environment["KEYHAUL_TESTED_PARTS"]?.split(separator: ",").map { "\($0)Tests" }

/// The commit of the build for `keyhaul version`: hexadecimal digits, and `-changed` if files were changed.
let commit: String = {
  let text = environment["KEYHAUL_COMMIT"] ?? ""
  let digits = text.hasSuffix("-changed") ? text.dropLast("-changed".count) : text[...]
  return digits.count <= 40 && digits.allSatisfy(\.isHexDigit) ? text : ""
}()

/// A target in `Sources/<layer>/<name>`.
func part(
  _ name: String, in layer: String, _ dependencies: [Target.Dependency], excluding excluded: [String] = [],
  sources: [String]? = nil
)
  -> Target
{
  .target(
    name: name, dependencies: dependencies, path: "Sources/\(layer)/\(name)", exclude: excluded, sources: sources,
    swiftSettings: strict + (optimizedParts.contains(name) ? optimizesSwift : []))
}

/// The tests in `Tests/<name>Tests`.
func tests(
  of name: String, _ dependencies: [Target.Dependency], target: String? = nil, excluding excluded: [String] = []
) -> Target {
  .testTarget(
    name: name + "Tests", dependencies: [.init(stringLiteral: target ?? name), "TestSupport"] + dependencies,
    path: "Tests/\(name)Tests",
    exclude: excluded, swiftSettings: strict)
}

/// C code of our own in `Sources/C/<name>`.
func code(_ name: String, _ settings: [CSetting] = [], excluding excluded: [String] = [], links: [LinkerSetting] = [])
  -> Target
{
  .target(name: name, path: "Sources/C/\(name)", exclude: excluded, cSettings: settings, linkerSettings: links)
}

/// A system library with its header in `Sources/C/<name>`.
func library(_ name: String, pkgConfig: String?, apt: String, brew: String, path: String? = nil) -> Target {
  .systemLibrary(
    name: name, path: path ?? "Sources/C/\(name)", pkgConfig: pkgConfig, providers: [.apt([apt]), .brew([brew])])
}

let parser: Target.Dependency = .product(name: "ArgumentParser", package: "swift-argument-parser")
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
/// SQLite's C interface, as GRDB imports it.
let grdbSQLite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")
let system: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")

// On Linux libarchive and libqrencode are loaded when they are needed; the portable program contains them. utf8proc's header is
// where the compiler looks, and the package manager warns about a flag in utf8proc's configuration.
let linksLibraries = purpose == "portable"
#if os(Linux)
  let archive = code(
    "CArchive", linksLibraries ? [.define("KEYHAUL_LINKS_LIBARCHIVE")] : [], excluding: ["Linked"],
    links: [.linkedLibrary(linksLibraries ? "archive" : "dl")])
  let utf8procConfiguration: String? = nil
#else
  let archive = library(
    "CArchive", pkgConfig: "libarchive", apt: "libarchive-dev", brew: "libarchive", path: "Sources/C/CArchive/Linked")
  let utf8procConfiguration: String? = "libutf8proc"
#endif

// The layers: a target may import the targets of all layers below its own (`Tests/Support/check_structure.py`).
let basics: [Target.Dependency] = ["Basics"]
let formats = basics + ["KeychainFormats"]
let crypto = formats + ["KeychainCrypto"]
let rules = crypto + ["KeychainRules"]
let keychains = rules + ["Keychains"]
let stores = keychains + ["VirtualDevice", "Backups"]

// Apple's systems have the keychain calls themselves: the modules with Apple's names are empty there.
#if os(Linux)
  let appleTargets = [
    part("KeychainServices", in: "Apple", keychains + ["VirtualDevice"], excluding: ["Apple"]),
    part("Security", in: "Apple", ["KeychainServices"]),
    part("LocalAuthentication", in: "Apple", ["KeychainServices"]),
    part(
      "KeyhaulTesting", in: "Apple", ["KeychainServices", "Explanations", "KeyhaulKit"] + stores, excluding: ["Apple"]),
    part("KeyhaulServing", in: "Apple", ["KeyhaulTesting", "DeviceServer", "KeyhaulKit"] + stores),
    .target(
      name: "KeychainExamples", dependencies: ["KeychainServices"], path: "docs/Examples", exclude: ["BackupReport"],
      packageAccess: false, swiftSettings: strict),
    tests(of: "Security", ["LocalAuthentication", "KeychainServices"]),
    tests(
      of: "KeychainServices",
      ["KeychainExamples", "Security", "LocalAuthentication", "KeyhaulTesting", "KeyhaulKit"] + stores,
      excluding: ["Tutorials"]),
    .testTarget(
      name: "TutorialCodeTests",
      dependencies: [
        "KeychainExamples", "KeychainServices", "Security", "LocalAuthentication", "KeyhaulTesting", "KeyhaulServing",
        "KeyhaulKit",
      ], path: "Tests/KeychainServicesTests/Tutorials", packageAccess: false, swiftSettings: strict),
    // The package that docs/Tutorials/TestYourAppsMigration.md shows, which has its own Package.swift
    .target(
      name: "SignIn", dependencies: ["KeychainServices"],
      path: "docs/Templates/AppKeychainTests/Sources/SignIn", packageAccess: false),
    .testTarget(
      name: "SignInTests", dependencies: ["SignIn", "KeyhaulTesting"],
      path: "docs/Templates/AppKeychainTests/Tests/SignInTests", packageAccess: false),
    tests(of: "KeyhaulTesting", ["KeychainServices", "Explanations", "Reports", "VirtualDevice", grdb]),
    tests(of: "KeyhaulServing", ["KeyhaulTesting", "Basics"]),
    .testTarget(
      name: "AppleComparisonTests",
      dependencies: ["Security", "LocalAuthentication", "KeychainServices", "KeyhaulTesting", "VirtualDevice"],
      exclude: ["README.md"], packageAccess: false, swiftSettings: strict),
  ]
  let foundationOnlyTests: [Target] =
    importsSecurity.isEmpty
    ? []
    : [.testTarget(name: "FoundationOnlyTests", dependencies: ["Security"], swiftSettings: strict + importsSecurity)]
  let appleNames = ["Security", "LocalAuthentication", "KeyhaulServing"]
#else
  let appleTargets = [
    part("KeychainServices", in: "Apple", [], sources: ["Apple"]),
    part("KeyhaulTesting", in: "Apple", ["KeychainServices"], sources: ["Apple"]),
  ]
  let foundationOnlyTests: [Target] = []
  let appleNames: [String] = []
#endif

let vectors = ["test", "certificate", "database-item", "database", "key-operation", "trust", "device-protocol"].map {
  "\($0)-vectors.json"
}

/// Returns whether a target is built. Only tests can be left out (`testedParts`).
func isWanted(_ target: Target) -> Bool {
  target.type != .test || testedParts?.contains(target.name) ?? true
}

// The plugin of `make docs` is a dependency only there, so that no other build fetches it.
let documentation: [Package.Dependency] =
  purpose == "docs"
  ? [.package(url: "https://github.com/swiftlang/swift-docc-plugin", .upToNextMinor(from: "1.5.0"))] : []

/// Targets that only the fuzzer uses from outside of the package.
let fuzzedNames = purpose == "fuzzing" ? ["DeviceServer"] : []

let package = Package(
  name: "keyhaul",
  platforms: [.macOS(.v15)],
  products: [
    .library(
      name: "KeyhaulKit",
      targets: [
        "Basics", "KeychainFormats", "KeychainCrypto", "KeychainRules", "Keychains", "VirtualDevice", "Backups",
        "KeyhaulKit",
      ]),
    .library(name: "Reports", targets: ["Explanations", "Reports"]),
    .executable(name: "keyhaul", targets: ["keyhaul"]),
  ] + (["KeychainServices", "KeyhaulTesting"] + appleNames + fuzzedNames).map { .library(name: $0, targets: [$0]) },
  dependencies: [
    // `ParserMessage` reads the sentences of its errors, so a new minor version needs a look first.
    .package(url: "https://github.com/apple/swift-argument-parser", .upToNextMinor(from: "1.8.2")),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ] + documentation,
  targets: [
    // Sources/C
    code(
      "CKeyhaul",
      (optimizedParts.contains("CKeyhaul") ? optimizesC : [])
        + (linksLibraries ? [.define("KEYHAUL_LINKS_LIBQRENCODE")] : []),
      links: linksLibraries ? [.linkedLibrary("qrencode")] : []),
    library("COpenSSL", pkgConfig: "openssl", apt: "libssl-dev", brew: "openssl@3"),
    library("CSQLite", pkgConfig: "sqlite3", apt: "libsqlite3-dev", brew: "sqlite"),
    archive,
    library("CUTF8Proc", pkgConfig: utf8procConfiguration, apt: "libutf8proc-dev", brew: "utf8proc"),
    code("CProgram", commit.isEmpty ? [] : [.define("KEYHAUL_COMMIT", to: "\"\(commit)\"")]),

    // Sources/Library
    part("Basics", in: "Library", ["CKeyhaul", "CSQLite", "CUTF8Proc", system]),
    part("KeychainFormats", in: "Library", basics),
    part("KeychainCrypto", in: "Library", formats + ["CKeyhaul", "COpenSSL", "CUTF8Proc"]),
    part("KeychainRules", in: "Library", crypto),
    part("Keychains", in: "Library", rules + ["CSQLite", grdb, grdbSQLite, system]),
    part("VirtualDevice", in: "Library", keychains + ["CKeyhaul", system]),
    part("Backups", in: "Library", keychains + ["CArchive", "CSQLite", grdb, system]),
    part("KeyhaulKit", in: "Library", stores),
    part("Explanations", in: "Library", ["KeyhaulKit"]),
    part("Reports", in: "Library", ["Explanations", "KeyhaulKit", "CKeyhaul"]),
    part("DeviceServer", in: "Library", ["KeyhaulKit", system] + stores),

    // Sources/CommandLine
    .executableTarget(
      name: "keyhaul", dependencies: ["DeviceServer", "KeyhaulKit", "Reports", "CProgram", parser, system],
      path: "Sources/CommandLine/keyhaul",
      swiftSettings: strict),

    // The program that the README shows
    .executableTarget(
      name: "BackupReport", dependencies: ["KeyhaulKit", "Reports"], path: "docs/Examples/BackupReport",
      packageAccess: false, swiftSettings: strict),

    // Tests
    .target(
      name: "TestSupport", dependencies: formats, path: "Tests/TestSupport", exclude: vectors, swiftSettings: strict),
    tests(of: "Basics", ["CKeyhaul", system]),
    tests(of: "KeychainFormats", basics),
    tests(of: "KeychainCrypto", formats + ["KeychainRules", "COpenSSL", "CKeyhaul"]),
    tests(of: "KeychainRules", crypto),
    tests(of: "Keychains", rules + ["CSQLite", grdb, grdbSQLite, system]),
    tests(of: "VirtualDevice", keychains + [grdb, system]),
    tests(of: "Backups", keychains + ["CSQLite", system]),
    tests(of: "KeyhaulKit", stores + [grdb, system]),
    tests(of: "Reports", ["KeyhaulKit"] + stores),
    tests(of: "DeviceServer", ["KeyhaulKit", system] + stores),
    tests(
      of: "CommandLine", ["BackupReport", "DeviceServer", "Reports", "KeyhaulKit", grdb, parser, system] + stores,
      target: "keyhaul",
      excluding: ["Sessions", "Snapshots"]),
  ].filter(isWanted) + (appleTargets + foundationOnlyTests).filter(isWanted),
  swiftLanguageModes: [.v6]
)
