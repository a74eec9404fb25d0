package inlet

import org.apache.spark.sql.{SparkSession, SparkSessionExtensions}
import org.apache.spark.sql.catalyst.analysis.AnalysisContext
import org.apache.spark.sql.catalyst.expressions.{Alias, CallMethodViaReflection, StructsToJson, XmlToStructs}
import org.apache.spark.sql.catalyst.plans.logical.{Command, LogicalPlan, Project, ScriptTransformation}
import org.apache.spark.sql.catalyst.rules.Rule
import org.apache.spark.sql.execution.command.SetCommand
import org.apache.spark.sql.types.VariantType

/** What `inlet serve` lets a client do: ask. An extension of Spark that looks at every plan before anything of it is
  * carried out, and lets pass queries and the commands named here; a command that it does not know is refused.
  *
  * A client's settings come with its connection, past SET, so they are asked for again with every plan.
  */
class ReadOnly extends (SparkSessionExtensions => Unit) {
  EndsWithItsStarter.begin()

  def apply(extensions: SparkSessionExtensions): Unit = {
    extensions.injectCheckRule(session => plan => ReadOnly.check(session, plan))
    extensions.injectPostHocResolutionRule(_ => VariantAsText)
  }
}

object ReadOnly {
  private val reading = "(Show|Describe).*|ExplainCommand|SetCommand|ResetCommand|SetCatalogAndNamespace|" +
    "SetNamespaceCommand|CreateVariable|SetVariable|DropVariable"
  // what would read the files, and the environment, of the server's account
  private val kept = Map("spark.sql.runSQLOnFiles" -> "false", "spark.sql.variable.substitute" -> "false")
  private val ours = "spark.sql.catalog.spark_catalog"

  /** May a client give this setting a value? Those of files and catalogs are the server's. */
  def isFree(name: String): Boolean =
    (name.startsWith("spark.sql.") || name == "spark.scheduler.pool") && !isCatalog(name) && name != ours

  def check(session: SparkSession, plan: LogicalPlan): Unit = {
    for ((name, value) <- session.conf.getAll)
      if (kept.get(name).exists(_ != value.toLowerCase) || isCatalog(name)) refuse(s"$name is the server's to say")
    plan.foreachWithSubqueries {
      case SetCommand(Some((name, Some(value)))) if kept.get(name).exists(_ != value.toLowerCase) || !isFree(name) =>
        refuse(s"$name is the server's to say")
      case command: Command if !command.getClass.getSimpleName.matches(reading) =>
        refuse(s"this server only reads (${command.nodeName})")
      case _: ScriptTransformation => refuse("this server runs no programs")
      case node =>
        node.expressions.foreach(_.foreach {
          case _: CallMethodViaReflection => refuse("this server calls no methods of Java")
          case xml: XmlToStructs if xml.options.keys.exists(_.toLowerCase == "rowvalidationxsdpath") =>
            refuse("no file of the server says what XML is valid")
          case _ =>
        })
    }
  }

  private def isCatalog(name: String) = name.startsWith("spark.sql.catalog.") && name != ours

  private def refuse(what: String) = throw new UnsupportedOperationException(s"Inlet: $what")
}

/** The Thrift Server knows no VARIANT, and fails on a column of that type: an answer has it as JSON text. Only an answer:
  * within a query, a view or a function VARIANT stays what it is.
  */
object VariantAsText extends Rule[LogicalPlan] {
  def apply(plan: LogicalPlan): LogicalPlan = {
    val context = AnalysisContext.get
    val isAnswer = context.nestedViewDepth == 0 && context.outerPlan.isEmpty && !plan.isInstanceOf[Command]
    if (!isAnswer || !plan.resolved || !plan.output.exists(_.dataType == VariantType)) plan
    else
      Project(
        plan.output.map {
          case column if column.dataType == VariantType =>
            Alias(new StructsToJson(column).withTimeZone(conf.sessionLocalTimeZone), column.name)()
          case column => column
        },
        plan
      )
  }
}

/** Standard input is a pipe from `inlet serve`: when that is gone, however it went, so is this server. */
object EndsWithItsStarter {
  private lazy val waiting = new Thread(() => { while (System.in.read() >= 0) {}; System.exit(0) })

  def begin(): Unit = synchronized {
    if (waiting.getState == Thread.State.NEW) {
      waiting.setDaemon(true)
      waiting.start()
    }
  }
}
