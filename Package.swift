// swift-tools-version: 6.2
import PackageDescription

let strict: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
  .treatAllWarnings(as: .error, .when(configuration: .debug)),
]

/// The parts that are optimised in a debug build too: `.ci/test` names those that walk through bytes. Whoever depends on this
/// package builds it without the variable, and may not build it with such flags.
let optimizedParts = Context.environment["KEYHAUL_OPTIMIZED_PARTS"]?.split(separator: ",").map(String.init) ?? []

/// A part of the library, its tests beside it in `Tests/<part>Tests`.
func part(
  _ name: String, _ dependencies: [Target.Dependency], excluding excluded: [String] = [], sources: [String]? = nil
) -> Target {
  .target(
    name: name, dependencies: dependencies, exclude: excluded, sources: sources,
    swiftSettings: strict + (optimizedParts.contains(name) ? [.unsafeFlags(["-O"])] : []))
}

func tests(of name: String, _ dependencies: [Target.Dependency] = []) -> Target {
  .testTarget(
    name: name + "Tests",
    dependencies: [.init(stringLiteral: name), "TestSupport"] + dependencies,
    path: "Tests/\(name)Tests",
    swiftSettings: strict)
}

/// The parts whose tests are built, where not all are wanted: `make sanitize` and `make coverage` build a few of them anew.
let testedParts = Context.environment["KEYHAUL_TESTED_PARTS"]?.split(separator: ",").map { "\($0)Tests" }

func isWanted(_ target: Target) -> Bool {
  target.type != .test || testedParts?.contains(target.name) ?? true
}

let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
/// SQLite's own C interface, as GRDB imports it.
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")

/// On Linux the header is where the compiler looks, and the package manager warns of a flag in utf8proc's configuration.
#if os(Linux)
  let utf8procConfiguration: String? = nil
#else
  let utf8procConfiguration: String? = "libutf8proc"
#endif

/// On Linux libarchive is opened when it is needed, and its header is where the compiler looks; where the variable is set, it
/// is linked, as `make portable` does that has it inside.
#if os(Linux)
  let linksArchive = Context.environment["KEYHAUL_LINKS_LIBARCHIVE"] != nil
  let archive = Target.target(
    name: "CArchive", exclude: ["Linked"],
    cSettings: linksArchive ? [.define("KEYHAUL_LINKS_LIBARCHIVE")] : [],
    linkerSettings: [.linkedLibrary(linksArchive ? "archive" : "dl")])
#else
  let archive = Target.systemLibrary(
    name: "CArchive", path: "Sources/CArchive/Linked", pkgConfig: "libarchive",
    providers: [.apt(["libarchive-dev"]), .brew(["libarchive"])])
#endif

/// The commit that `make` builds, for `keyhaul version`: hexadecimal digits, with a mark where files were changed.
let commit: String = {
  let text = Context.environment["KEYHAUL_COMMIT"] ?? ""
  let digits = text.hasSuffix("-changed") ? text.dropLast("-changed".count) : text[...]
  return digits.count <= 40 && digits.allSatisfy(\.isHexDigit) ? text : ""
}()

/// The name that Foundation's static library has for ICU's data, where the release program does without them (`make build`).
let unicodeData: String? = {
  guard let name = Context.environment["KEYHAUL_UNICODE_DATA"], name.hasPrefix("icudt"), name.hasSuffix("_dat") else {
    return nil
  }
  return name.dropFirst("icudt".count).dropLast("_dat".count).allSatisfy(\.isWholeNumber) ? name : nil
}()

/// What the system's calls about files give and refuse, in Swift's words; `Files` alone makes them.
let system: Target.Dependency = .product(name: "SystemPackage", package: "swift-system")

/// Apple's systems have the keychain calls themselves: there the module is nothing but `Security`.
#if os(Linux)
  let keychainServices = part(
    "KeychainServices",
    [
      "VirtualDevice", "SecItem", "KeychainStore", "KeychainRules", "Certificates", "DataProtection", "ShownNames",
      "KeychainFormats",
      "ParallelWork",
    ],
    excluding: ["Apple"])
  let keyhaulTesting = part(
    "KeyhaulTesting",
    [
      "KeychainServices", "Reports", "Migration", "ArchivedKeychain", "BackupArchive", "VirtualDevice", "SecItem",
      "KeychainRules", "DataProtection", "ShownNames", "KeychainFormats", "ParallelWork", "BundledFixtures",
    ],
    excluding: ["Apple"])
  /// The classes of the tutorials, to be copied into an app: no product, built and tested like one.
  let keychainExamples = [
    Target.target(
      name: "KeychainExamples", dependencies: ["KeychainServices"], path: "docs/Examples", swiftSettings: strict)
  ]
  /// Apple's names of the modules, so that not even an import of existing code has to change.
  let applesModules = [part("Security", ["KeychainServices"]), part("LocalAuthentication", ["KeychainServices"])]
  let keychainServicesTests = [
    tests(of: "Security", ["LocalAuthentication", "KeychainServices"]),
    .testTarget(
      name: "FoundationOnlyTests", dependencies: ["Security"],
      swiftSettings: strict + [.unsafeFlags(["-Xfrontend", "-import-module", "-Xfrontend", "Security"])]),
    tests(
      of: "KeychainServices",
      [
        "KeychainExamples", "Security", "LocalAuthentication", "KeyhaulTesting", "KeyhaulKit", "Migration",
        "ArchivedKeychain", "VirtualDevice",
        "BackupArchive", "BackupWriting", "BackupRewriting", "SecItem", "KeychainStore", "KeychainRules",
        "DataProtection",
        "KeychainFormats", "ParallelWork",
      ]),
    tests(of: "KeyhaulTesting", ["KeychainServices", "Reports", "BundledFixtures", "VirtualDevice", grdb]),
  ]
#else
  let keychainServices = part("KeychainServices", [], sources: ["Apple"])
  /// There are no virtual phones behind Security: the module says so where one is made.
  let keyhaulTesting = part("KeyhaulTesting", ["KeychainServices"], sources: ["Apple"])
  let keychainExamples: [Target] = []
  let applesModules: [Target] = []
  let keychainServicesTests: [Target] = []
#endif

/// What `make docs` builds the site with. Whoever depends on this package would fetch the plugin with it and use nothing of
/// it, and so would every build of the program; so it is there where the variable is set, and nowhere else.
let documentationTools: [Package.Dependency] =
  Context.environment["KEYHAUL_DOCS"] == nil
  ? [] : [.package(url: "https://github.com/swiftlang/swift-docc-plugin", .upToNextMinor(from: "1.5.0"))]

let package = Package(
  name: "keyhaul",
  platforms: [.macOS(.v15)],
  products: [
    .library(
      name: "KeyhaulKit",
      targets: [
        "KeyhaulKit", "ParallelWork", "Files", "SecretMemory", "KeychainFormats", "ShownNames", "TextLayout",
        "DataProtection",
        "PageLayout",
        "Certificates",
        "KeychainRules", "KeychainDumps", "KeychainStore", "SecItem", "VirtualDevice", "BackupArchive",
        "BackupWriting", "BackupRewriting", "ArchivedKeychain", "Migration", "Reports",
      ]),
    .library(name: "KeychainServices", targets: ["KeychainServices"]),
    .library(name: "KeyhaulTesting", targets: ["KeyhaulTesting"]),
    .executable(name: "keyhaul", targets: ["keyhaul"]),
  ] + applesModules.map { .library(name: $0.name, targets: [$0.name]) },
  dependencies: [
    // Its words are read where its errors are told anew, so a new minor version is looked at first.
    .package(url: "https://github.com/apple/swift-argument-parser", .upToNextMinor(from: "1.8.2")),
    .package(url: "https://github.com/apple/swift-system", from: "1.8.1"),
    .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
  ] + documentationTools,
  targets: ([
    .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"]), .brew(["openssl@3"])]),
    archive,
    .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"]), .brew(["sqlite"])]),
    .systemLibrary(
      name: "CUTF8Proc", pkgConfig: utf8procConfiguration, providers: [.apt(["libutf8proc-dev"]), .brew(["utf8proc"])]),
    .target(
      name: "CKeyDerivation", cSettings: optimizedParts.contains("CKeyDerivation") ? [.unsafeFlags(["-O2"])] : []),
    .target(name: "CProgramArguments"),
    .target(
      name: "CBuildCommit", cSettings: commit.isEmpty ? [] : [.define("KEYHAUL_COMMIT", to: "\"\(commit)\"")]),
    .target(name: "CUnicodeData", cSettings: unicodeData.map { [.define("KEYHAUL_UNICODE_DATA", to: $0)] } ?? []),
    .target(name: "CBundledFixtures"),
    .target(name: "CFileCalls"),
    .target(name: "CThreadStack"),
    part("ParallelWork", ["CThreadStack"]),
    .target(name: "CProcessGuard"),
    part("Files", ["CFileCalls", system]),
    part("SecretMemory", ["ParallelWork"]),
    part("KeychainFormats", ["SecretMemory", "ParallelWork"]),
    part("ShownNames", ["KeychainFormats"]),
    part("TextLayout", ["ShownNames", "KeychainFormats", "CUTF8Proc"]),
    part(
      "DataProtection",
      ["ParallelWork", "SecretMemory", "KeychainFormats", "COpenSSL", "CKeyDerivation", "CUTF8Proc"]),
    part("PageLayout", ["DataProtection", "ShownNames", "KeychainFormats"]),
    part("Certificates", ["DataProtection", "KeychainFormats", "COpenSSL"]),
    part("KeychainRules", ["DataProtection", "KeychainFormats"]),
    part("KeychainDumps", ["KeychainRules", "DataProtection", "KeychainFormats"]),
    part("KeychainDatabases", ["KeychainDumps", "KeychainRules", "DataProtection", "KeychainFormats", "CSQLite"]),
    part("KeychainStore", ["KeychainRules", "DataProtection", "KeychainFormats", "Files", system, grdb, sqlite]),
    part("SecItem", ["KeychainStore", "KeychainRules", "Certificates", "DataProtection", "KeychainFormats"]),
    part(
      "VirtualDevice",
      [
        "SecItem", "KeychainStore", "KeychainRules", "DataProtection", "ShownNames", "KeychainFormats", "SecretMemory",
        "Files",
        "ParallelWork", system,
      ]),
    part(
      "BackupArchive",
      ["DataProtection", "ShownNames", "KeychainFormats", "Files", "ParallelWork", system, "CArchive", "CSQLite", grdb]),
    part("BackupWriting", ["BackupArchive", "DataProtection", "KeychainFormats", "Files"]),
    part("BackupRewriting", ["BackupArchive", "DataProtection", "KeychainFormats", "Files", system]),
    part(
      "ArchivedKeychain",
      [
        "BackupArchive", "KeychainRules", "Certificates", "DataProtection", "ShownNames", "KeychainFormats", "Files",
        "ParallelWork",
        system,
      ]),
    part(
      "Migration",
      [
        "VirtualDevice", "ArchivedKeychain", "BackupWriting", "BackupArchive", "KeychainStore", "KeychainDatabases",
        "KeychainDumps", "KeychainRules", "DataProtection", "ShownNames", "KeychainFormats", "Files",
      ]),
    part(
      "Reports",
      [
        "Migration", "KeychainDatabases", "KeychainDumps", "VirtualDevice", "ArchivedKeychain", "BackupArchive",
        "KeychainStore",
        "KeychainRules", "Certificates", "DataProtection", "PageLayout", "TextLayout", "ShownNames", "KeychainFormats",
      ]),
    part(
      "KeyhaulKit",
      [
        "Migration", "VirtualDevice", "ArchivedKeychain", "BackupArchive", "BackupWriting", "BackupRewriting",
        "KeychainStore", "KeychainRules",
        "DataProtection", "KeychainFormats",
      ]),
    keychainServices,
    keyhaulTesting,
    .target(
      name: "BundledFixtures", dependencies: ["CBundledFixtures"], path: "Fixtures",
      exclude: ["README.md", "backup-faults.json", "devices", "make_fixtures.py", "secitem-calls.csv"],
      sources: ["BundledFixtures.swift"], swiftSettings: strict),
    part(
      "CommandSession",
      [
        "TextLayout", "DataProtection", "ShownNames", "KeychainFormats", "SecretMemory", "Files", "ParallelWork",
        system,
        "CProgramArguments",
        "CProcessGuard",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    part(
      "CommandArguments",
      [
        "CommandSession", "TextLayout", "Reports", "Migration", "ArchivedKeychain", "VirtualDevice", "BackupArchive",
        "KeychainDatabases", "KeychainDumps", "KeychainStore", "KeychainRules", "Certificates", "DataProtection",
        "ShownNames", "KeychainFormats", "Files",
        "BundledFixtures",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    part(
      "ManyBackups",
      [
        "CommandArguments", "CommandSession", "TextLayout", "ArchivedKeychain", "BackupArchive", "DataProtection",
        "ShownNames", "KeychainFormats", "Files", "ParallelWork", system,
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    part(
      "ExportVerb",
      [
        "CommandArguments", "CommandSession", "TextLayout", "Reports", "Migration", "ArchivedKeychain", "VirtualDevice",
        "BackupArchive", "DataProtection", "KeychainDumps", "KeychainStore", "KeychainRules", "ShownNames",
        "KeychainFormats",
        "Files",
        "ParallelWork",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    part(
      "SimulatorVerbs",
      [
        "CommandArguments", "CommandSession", "TextLayout", "Reports", "ArchivedKeychain", "VirtualDevice",
        "BackupArchive", "DataProtection",
        "KeychainDatabases", "KeychainDumps", "KeychainStore", "KeychainRules", "ShownNames", "KeychainFormats",
        "BundledFixtures",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    part(
      "ItemVerbs",
      [
        "SimulatorVerbs", "CommandArguments", "CommandSession", "TextLayout", "Reports", "Migration",
        "ArchivedKeychain", "VirtualDevice",
        "BackupArchive", "BackupRewriting", "Certificates", "DataProtection", "KeychainDatabases", "KeychainDumps",
        "KeychainStore", "KeychainRules", "ShownNames", "KeychainFormats",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ]),
    .executableTarget(
      name: "keyhaul",
      dependencies: [
        "ItemVerbs", "SimulatorVerbs", "ExportVerb", "ManyBackups", "CommandArguments", "CommandSession", "TextLayout",
        "Reports", "Migration", "ArchivedKeychain", "VirtualDevice",
        "BackupArchive", "BackupWriting", "BackupRewriting", "KeychainDatabases", "KeychainDumps", "SecItem",
        "KeychainStore",
        "KeychainRules",
        "Certificates", "DataProtection",
        "ParallelWork", "ShownNames", "KeychainFormats", "Files", system, "BundledFixtures", "CBuildCommit",
        "CUnicodeData",
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      swiftSettings: strict),
    .target(
      name: "TestSupport", dependencies: ["KeychainFormats", "ParallelWork"], path: "Tests/TestSupport",
      exclude: [
        "test-vectors.json", "certificate-vectors.json", "database-item-vectors.json", "database-vectors.json",
        "key-operation-vectors.json", "trust-vectors.json",
      ], swiftSettings: strict),
    tests(of: "ParallelWork"),
    tests(of: "Files", ["ParallelWork", system]),
    tests(of: "SecretMemory"),
    tests(of: "KeychainFormats", ["ParallelWork"]),
    tests(of: "ShownNames"),
    tests(of: "DataProtection", ["KeychainFormats", "COpenSSL", "CKeyDerivation"]),
    tests(of: "Certificates", ["KeychainRules", "DataProtection", "KeychainFormats"]),
    tests(of: "KeychainRules", ["DataProtection", "KeychainFormats"]),
    tests(of: "KeychainDumps", ["KeychainRules", "DataProtection", "KeychainFormats"]),
    tests(of: "KeychainDatabases", ["KeychainDumps", "KeychainRules", "DataProtection", "KeychainFormats", "CSQLite"]),
    tests(
      of: "KeychainStore",
      ["KeychainRules", "DataProtection", "KeychainFormats", "Files", "ParallelWork", system, grdb, sqlite]),
    tests(of: "SecItem", ["KeychainStore", "KeychainRules", "DataProtection", "KeychainFormats", grdb]),
    tests(
      of: "VirtualDevice",
      [
        "SecItem", "KeychainStore", "KeychainRules", "DataProtection", "KeychainFormats", "Files", "ParallelWork",
        system,
      ]),
    tests(
      of: "BackupArchive",
      [
        "BackupWriting", "BackupRewriting", "ArchivedKeychain", "KeychainDatabases", "DataProtection",
        "KeychainFormats",
        "Files",
        "ParallelWork",
        system,
        "CSQLite",
      ]),
    tests(
      of: "ArchivedKeychain",
      [
        "BackupArchive", "BackupWriting", "BackupRewriting", "KeychainRules", "DataProtection", "KeychainFormats",
        "Files",
      ]),
    tests(
      of: "Migration",
      [
        "VirtualDevice", "ArchivedKeychain", "BackupArchive", "BackupWriting", "BackupRewriting", "KeychainDumps",
        "KeychainStore",
        "KeychainRules", "DataProtection", "KeychainFormats", "Files", system, "BundledFixtures", grdb,
      ]),
    tests(of: "KeyhaulKit"),
    tests(
      of: "Reports",
      [
        "Migration", "ArchivedKeychain", "BackupArchive", "KeychainRules", "DataProtection", "PageLayout",
        "ShownNames", "KeychainFormats",
      ]),
    .testTarget(
      name: "CommandLineTests",
      dependencies: [
        "keyhaul", "ItemVerbs", "SimulatorVerbs", "ExportVerb", "ManyBackups", "CommandArguments", "CommandSession",
        "TextLayout",
        "TestSupport",
        "Reports",
        "Migration",
        "ArchivedKeychain", "BackupArchive", "BackupWriting", "KeychainRules", "DataProtection", "ShownNames",
        "KeychainFormats",
        "SecretMemory",
        "Files",
        system, grdb,
        .product(name: "ArgumentParser", package: "swift-argument-parser"),
      ],
      path: "Tests/CommandLineTests", exclude: ["Sessions", "Snapshots"],
      swiftSettings: strict),
  ] + keychainExamples + applesModules + keychainServicesTests).filter(isWanted),
  swiftLanguageModes: [.v6]
)
