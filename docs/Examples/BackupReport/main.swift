import KeyhaulKit
import Reports

// The backup's path is an argument; its password is a line of standard input.
let backup = try Backup(path: CommandLine.arguments[1], password: Secret(utf8: readLine() ?? ""))

for decision in try backup.outlook().planForNewDevice.decisions { print(decision) }

let verification = try backup.verify()
print("verification: \(verification.verdict), \(verification.faults.count) faults")

let export = backup.export(as: .passwords, date: DeviceClock.system.now())
try export.contents.write(toNewFile: "passwords.csv")
print("exported: \(export.counts.count) passwords")
