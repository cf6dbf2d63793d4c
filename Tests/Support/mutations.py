"""The changes of `check_mutations.py`: small faults that a reviewer would look for, in all parts.

Each change names the expression between « and », with enough text around it to occur once in its file. Tests missed
faults of these kinds before: the far edge of a range, the second variant of a branch, a field that is
written and not compared, a default that no caller uses, a limit, a report format that only the program writes, a
secret that one format hides and another does not, a missing sync, an inverted condition, swapped names, and a wrong
exit code.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Mutation:
    """One change of the sources."""

    number: int
    kind: str
    file: str
    context: str
    mutant: str
    # What the change does, for the table.
    summary: str
    # The tests that are run first: a regular expression for `swift test --filter`.
    suites: str
    is_statement: bool

    @property
    def parts(self):
        """The text before the changed expression, the expression, and the text after it."""
        before, remainder = self.context.split("«")
        return before, *remainder.split("»")


MUTATIONS = []


def add(kind, file, context, mutant, summary, suites, is_statement=False):
    """Add a change, with the next number."""
    MUTATIONS.append(
        Mutation(len(MUTATIONS) + 1, kind, f"Sources/{file}", context, mutant, summary, suites, is_statement)
    )


EDGE, VARIANT, FIELD, DEFAULT, LIMIT = "edge of a range", "second variant", "field", "default", "limit"
FORMAT, SECRET, SYNC, INVERTED, SWAPPED, EXIT = "report format", "secret", "sync", "condition", "swapped", "exit code"

# KeychainFormats
add(
    EDGE,
    "Library/KeychainFormats/PropertyLists/BinaryPlistReader.swift",
    "guard «size < 8» else { throw malformed(\"a reference of",
    "size < 4",
    "binary plists: UIDs of 5 to 8 bytes are refused",
    "BinaryPlistTests",
)
add(
    EDGE,
    "Library/KeychainFormats/PropertyLists/DERDate.swift",
    "«second <= 61»",
    "second < 61",
    "dates: a second 61 is refused",
    "DERRuleTests",
)
add(
    EDGE,
    "Library/KeychainFormats/PropertyLists/DERDate.swift",
    "year + («year < 50» ?",
    "year <= 50",
    "dates: a UTCTime of year 50 is in 2050, not 1950",
    "DERRuleTests",
)
add(
    LIMIT,
    "Library/KeychainFormats/Keybags/Keybag.swift",
    "guard «groupStarts.count <= Self.maximumClassKeyCount» else",
    "groupStarts.count < Self.maximumClassKeyCount",
    "keybags: 64 class keys are refused",
    "KeybagFaultTests",
)
add(
    VARIANT,
    "Library/KeychainFormats/Keybags/Keybag.swift",
    "for tag in «[Tag.salt, .iterations, .dpic, .dpsl]» where",
    "[Tag.salt, .iterations, .dpic]",
    "keybags: two different DPSL entries are not reported",
    "KeybagFaultTests",
)

# KeychainCrypto
add(
    EDGE,
    "Library/KeychainCrypto/Certificates/CertificateAttributes.swift",
    "&& «date <= period.end»",
    "date < period.end",
    "certificates: invalid in the last second of their validity",
    "CertificateTests",
)
add(
    VARIANT,
    "Library/KeychainCrypto/Certificates/CertificateAttributes.swift",
    "where «[\"CERTIFICATE\", \"X509 CERTIFICATE\"]».contains(",
    "[\"CERTIFICATE\"]",
    "PEM: the label X509 CERTIFICATE is not read",
    "CertificateTests",
)
add(
    VARIANT,
    "Library/KeychainCrypto/Certificates/Trust/ChainSearch.swift",
    "let name = «host.hasSuffix(\".\")» ?",
    "false",
    "trust: a host name with a final dot matches nothing",
    "TrustTests",
)
add(
    EDGE,
    "Library/KeychainCrypto/Derivation/PBKDF2.swift",
    "guard «key.count > Self.blockSize» else",
    "key.count >= Self.blockSize",
    "PBKDF2 of OpenSSL: a password of 64 bytes is digested first",
    "KeyDerivationTests",
)
add(
    EDGE,
    "Library/KeychainCrypto/Ciphers/FileCipher.swift",
    "«(1...FileCipher.blockSize).contains(paddingCount)»",
    "(1..<FileCipher.blockSize).contains(paddingCount)",
    "files: a padding of a whole block is invalid",
    "FileCipherTests",
)
add(
    LIMIT,
    "Library/KeychainCrypto/Keybags/BackupKeybag.swift",
    "guard «(1...maximumRounds).contains(rounds)», let count",
    "(1..<maximumRounds).contains(rounds)",
    "keybags: the largest iteration count is refused",
    "KeybagCreationTests",
)

# KeychainRules
add(
    EDGE,
    "Library/KeychainRules/Columns/NumericAffinity.swift",
    "guard let integer = Int64(exactly: real), «integer > Int64.min», integer",
    "integer >= Int64.min",
    "columns: the real number -2^63 becomes an integer",
    "PrimaryKeyTests",
)
add(
    EDGE,
    "Library/KeychainRules/Importing/ImportConflict.swift",
    "if let incomingDate, «incomingDate > existingDate» { return",
    "incomingDate >= existingDate",
    "import: a winner of the same date does not get a later one",
    "^KeychainRulesTests",
)
add(
    VARIANT,
    "Library/KeychainRules/Importing/RestoreRemoval.swift",
    "«columns[.sharingGroup] == .text([])»",
    "true",
    "restore: removes copies of a shared group's items",
    "^KeychainRulesTests",
)
add(
    INVERTED,
    "Library/KeychainRules/Columns/AttributeConversion.swift",
    "guard let number = Int32(text), «String(number) == text» else",
    "true",
    "columns: the text 007 becomes the number 7",
    "^KeychainRulesTests",
)
add(
    DEFAULT,
    "Library/KeychainRules/Exporting/ExportExclusions.swift",
    "$0.item.isTombstone && «!$0.deviceSyncs»",
    "true",
    "backup: a device that syncs keeps its tombstones to itself",
    "^KeychainRulesTests",
)

# Keychains
add(
    VARIANT,
    "Library/Keychains/Dumps/Formats/KeychainDumperReader.swift",
    "|| «bytes.elementsEqual(\"<Not Accessible>\".utf8)»",
    "false",
    "keychain_dumper: <Not Accessible> is taken for a secret",
    "ToolDumpTests",
)
add(
    LIMIT,
    "Library/Keychains/Databases/KeychainDatabase.swift",
    "guard «count <= maximumKeyRowCount» else",
    "count < maximumKeyRowCount",
    "databases: 1000 metadata keys are refused",
    "KeychainDatabaseTests",
)
add(
    FIELD,
    "Library/Keychains/Databases/KeychainDatabase.swift",
    "as: «log.hasUncommittedFrames» ?",
    "false",
    "databases: a log that is cut short counts as applied",
    "KeychainDatabaseTests",
)
add(
    VARIANT,
    "Library/Keychains/Simulator/SimulatorKeychain.swift",
    "guard «schema.major == 11» ||",
    "false",
    "Simulators: schema 11 cannot be changed",
    "SimulatorKeychainTests",
)
add(
    VARIANT,
    "Library/Keychains/Simulator/SimulatorKeychain+Items.swift",
    "«columns[item.kind]?.contains(\"clip\") == true»",
    "false",
    "Simulators: the App Clip flag is lost",
    "SimulatorKeychainTests",
)

# VirtualDevice
add(
    EDGE,
    "Library/VirtualDevice/SecItem/Query/ParsedQuery+MatchKeys.swift",
    "guard let count = Int(exactly: count), «count >= 0» else",
    "count > 0",
    "queries: a limit of 0 is refused",
    "SecItemCall",
)
add(
    VARIANT,
    "Library/VirtualDevice/SecItem/Service/MatchFilter.swift",
    "«$0.lowercased() == address.lowercased()»",
    "$0 == address",
    "queries: email addresses are compared with their case",
    "PKCS12Tests",
)
add(
    INVERTED,
    "Library/VirtualDevice/SecItem/Query/ParsedQuery.swift",
    "guard «call == .copyMatching» else",
    "true",
    "queries: a deletion may skip items that require authentication",
    "SecItemCall",
)
add(
    VARIANT,
    "Library/VirtualDevice/SecItem/Values/AccessControl.swift",
    "flags.isSubset(of: «[.userPresence, .applicationPassword, .privateKeyUsage]»)",
    "[.userPresence, .privateKeyUsage]",
    "access controls: user presence excludes an application password",
    "KeychainServicesTests.*AccessControlTests",
)
add(
    SYNC,
    "Library/VirtualDevice/Files/DeviceChange.swift",
    "      // The names of the new files must be durable before the list that refers to them.\n"
    "      «try files.syncDirectory(directory)»\n",
    "",
    "devices: the staged files' names are not synced before the list",
    "CommitStageTests",
    is_statement=True,
)

# Backups
add(
    INVERTED,
    "Library/Backups/Container/ZipDirectory.swift",
    "«offset == all32Bits || offset == large.offset»",
    "true",
    "zip: two end records may name different offsets",
    "MaliciousContainerTests",
)
add(
    EDGE,
    "Library/Backups/Verification/BackupVerifier+Files.swift",
    "{ «$0 == 0» || !$0.isMultiple(of: 16) }",
    "false",
    "verify --quick: an empty encrypted file is whole",
    "VerificationTests",
)
add(
    INVERTED,
    "Library/Backups/Verification/BackupVerification.swift",
    "case .foreign: «verifiedAllFiles»",
    "true",
    "verify: a foreign backup is whole though files were not checked",
    "VerificationTests",
)
add(
    SYNC,
    "Library/Backups/Writing/BackupInstaller.swift",
    "    do throws(Errno) {\n      «try system.syncDirectory(parent)»\n      return true",
    "",
    "backup: the name of a new folder is not synced",
    "FaultInjectionTests",
    is_statement=True,
)
add(
    EDGE,
    "Library/Backups/Extraction/Names/SafeName.swift",
    "«shortened.utf8.count + character.utf8.count + count + 1 <= maximumByteCount»",
    "shortened.utf8.count + character.utf8.count + count <= maximumByteCount",
    "export --files: a shortened name has 256 bytes",
    "^BackupsTests.*Extraction",
)

# KeyhaulKit and Explanations
add(
    FIELD,
    "Library/KeyhaulKit/Forecasts/RestoreOutlook.swift",
    "counts.unreadable += «sourceDeviceItems.unreadable.count»",
    "0",
    "outlook: items that the source device cannot read are not counted",
    "OutlookCountTests",
)
add(
    EDGE,
    "Library/KeyhaulKit/Planning/TargetModel.swift",
    "return «targetDate > backupDate» ? .newer",
    "targetDate >= backupDate",
    "plan: an overwritten item of the same date counts as newer",
    "PlannerTests",
)
add(
    SECRET,
    "Library/KeyhaulKit/Forecasts/RestoreOutlook.swift",
    "sourceDeviceItems: «sourceDeviceItems?.redacted»)",
    "sourceDeviceItems",
    "plan --redact: names of items in no backup stay in the outlook",
    "OutlookCountTests",
)
add(
    FIELD,
    "Library/KeyhaulKit/Document/PlanDocument.swift",
    "if «target.sameDevice != current.target.sameDevice» { return",
    "false",
    "restore --plan: a plan for another device is accepted",
    "PlanDocumentTests",
)
add(
    VARIANT,
    "Library/KeyhaulKit/Expectations/PlanExpectation.swift",
    "if let onSameDevice, «onSameDevice != scenario.onSameDevice» { return",
    "onSameDevice == false && scenario.onSameDevice == true",
    "plan --expect: same_device true is checked for other devices too",
    "^KeyhaulKitTests.*Expectation",
)
add(
    EXIT,
    "Library/Explanations/BackupResult.swift",
    "case .stalePlan: «16»",
    "14",
    "results: stale-plan has code 14",
    "BackupResultTests|CommandExitStatusTests",
)

# Reports
add(
    SECRET,
    "Library/Reports/Documents/Items/ItemCSV.swift",
    "guard let item = row.item, «!(omitsProtectedSecrets && item.requiresAuthentication)», let secret",
    "true",
    "item find --format csv --reveal: prints protected secrets",
    "ItemCSVTests|ProtectedSecretTests",
)
add(
    FORMAT,
    "Library/Reports/Documents/Items/ItemCSV.swift",
    "case .integer(let number): «String(number)»",
    "\"\"",
    "item find --format csv: no port",
    "ItemCSVTests",
)
add(
    SWAPPED,
    "Library/Reports/Documents/Backups/DifferenceDocument.swift",
    "\"in_first\": .each(«difference.possiblyInSecond»)",
    "difference.possiblyInFirst",
    "diff --json: doubtful items of the other side",
    "DocumentMemberTests",
)
add(
    SWAPPED,
    "Library/Reports/Documents/Backups/VerificationDocument.swift",
    "\"other_size\": .count(«files.otherSize»)",
    "files.unread",
    "verify --json: other_size is the number of unread files",
    "DocumentMemberTests",
)
add(
    FORMAT,
    "Library/Reports/Documents/Backups/InspectionDocument.swift",
    "\"links\": .count(«listing.linkCount»)",
    "listing.directoryCount",
    "inspect --json: links are folders",
    "VerifyAndDiffTests",
)
add(
    SWAPPED,
    "Library/Reports/Documents/Moving/RestoreDocument.swift",
    "(\"overwritten_newer\", .count(«overwrittenNewerCount»))",
    "overwrittenCount",
    "restore --json: overwritten_newer counts all overwritten items",
    "MoveReportTests",
)
add(
    FORMAT,
    "Library/Reports/Documents/Backups/BackupDocument.swift",
    "\"deleted\": .array(«report.tombstones».map",
    "[]",
    "backup --json: no deleted items",
    "DocumentMemberTests",
)
add(
    FORMAT,
    "Library/Reports/Documents/Backups/DumpInspection.swift",
    "(\"table_stated\", .boolean(«item.tableSource == .stated»))",
    "item.tableSource != .stated",
    "inspect --json of a dump: table_stated is inverted",
    "DatabaseCommandTests",
)
add(
    EDGE,
    "Library/Reports/OneTimePasswords/OTPAuthURIReader.swift",
    "guard let count = UInt8(value), «(1...10).contains(count)» else",
    "(1...9).contains(count)",
    "export --format otpauth: codes of ten digits are left out",
    "OneTimePasswordTests",
)
add(
    FORMAT,
    "Library/Reports/ItemExports/CertificatesAndKeys.swift",
    "if item.kind == .key, «item.role == .privateKey» {",
    "true",
    "export --format pem: public keys count as secrets",
    "CertificatesAndKeysTests",
)

# The program
add(
    EXIT,
    "CommandLine/keyhaul/Commands/Backups/Export/Export.swift",
    "return items.damagedCount > 0 || «source.authenticators.hasUnreadableFile» ?",
    "false",
    "export: 0 though an authenticator's file cannot be read",
    "ExportReadingTests",
)
add(
    SECRET,
    "CommandLine/keyhaul/Commands/Backups/Export/ExportSource.swift",
    "var omitsProtectedSecrets: Bool { «kind != .dump» }",
    "kind == .archive",
    "export of a device: writes protected secrets",
    "ProtectedSecretTests",
)
add(
    SECRET,
    "CommandLine/keyhaul/Commands/Items/SearchableItems.swift",
    "sourceKind = \"archive\"\n    omitsProtectedSecrets = «true»",
    "false",
    "item find of a backup: prints protected secrets",
    "ProtectedSecretTests",
)
add(
    FORMAT,
    "CommandLine/keyhaul/Commands/Items/ItemFind.swift",
    "if reveal, «omitsProtectedSecrets» { warnAboutProtected",
    "false",
    "item find --format csv --reveal: does not say that secrets are left out",
    "ProtectedSecretTests",
)
add(
    EXIT,
    "CommandLine/keyhaul/Commands/Items/ItemFind.swift",
    "return «result.mayBeIncomplete && status == .ok ? .partial : status»",
    "status",
    "item find: 0 though damaged items may match",
    "BackupItemTests",
)
add(
    FORMAT,
    "CommandLine/keyhaul/BackupBatch/Formatters/ResultFormatter.swift",
    "«isShown ? UntrustedText.escaped(CSV.fields(fields)) + \"\\n\" : CSV.line(fields)»",
    "CSV.line(fields)",
    "verify --format csv of many backups: control characters reach the terminal",
    "BatchCommandTests",
)
add(
    LIMIT,
    "CommandLine/keyhaul/BackupBatch/Running/BatchOptions.swift",
    "guard let value = Int(argument), «(1...Self.maximum).contains(value)» else",
    "(1..<Self.maximum).contains(value)",
    "verify --jobs 256 is refused",
    "BatchCommandTests",
)
add(
    FORMAT,
    "CommandLine/keyhaul/Commands/Moving/Restore.swift",
    ".count(«changes[.keepsExisting, default: 0] + changes[.identical, default: 0]»)",
    "changes[.keepsExisting, default: 0]",
    "restore --json to a Simulator: equal items are not counted as kept",
    "SimulatorCommandTests",
)
add(
    FORMAT,
    "CommandLine/keyhaul/Commands/Items/ItemDelete.swift",
    "outcome(«dryRun.isOn ? 0 : entries.count»)",
    "entries.count",
    "item delete -n --json: counts deleted items",
    "ItemChangeTests",
)
add(
    EXIT,
    "CommandLine/keyhaul/Commands/Moving/PlanCommand.swift",
    "summary.migrates < summary.total || «report.source.sourceDeviceItems?.absent.isEmpty == false»",
    "false",
    "plan --exit-code: 0 though items of the source device are in no backup",
    "SourceDeviceTests",
)

# Apple's modules and the server
add(
    EDGE,
    "Apple/KeychainServices/References/SecKey.swift",
    "«(bits % 8 == 0 ? 0 : 1)»",
    "0",
    "SecKeyGetBlockSize: 65 bytes for P-521",
    "KeychainServicesTests.*CertificatesAndKeysTests",
)
add(
    SWAPPED,
    "Apple/KeyhaulTesting/Moves/Move.swift",
    "(«unreadable.count», \"damaged\")",
    "neverInBackup.count",
    "failure texts: items in no backup count as damaged",
    "KeyhaulTestingTests.*(Story|Move)",
)
add(
    LIMIT,
    "Library/DeviceServer/Backup2/BackupUpload.swift",
    "guard try link.freeByteCount() > «byteCount + Self.reservedByteCount» else",
    "byteCount",
    "served devices: no reserve of free space is asked for",
    "^DeviceServerTests",
)
