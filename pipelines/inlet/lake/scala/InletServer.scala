package org.apache.spark.sql.hive.thriftserver

import java.util.{HashMap => JavaMap, Map => JavaMapOf}
import java.util.concurrent.Future

import scala.jdk.CollectionConverters._

import inlet.{PasswordFile, ReadOnly}
import org.apache.hive.service.cli.{CLIService, HiveSQLException, SessionHandle}
import org.apache.hive.service.cli.operation.OperationManager
import org.apache.hive.service.cli.session.{HiveSession, SessionManager}
import org.apache.hive.service.rpc.thrift.TProtocolVersion
import org.apache.hive.service.server.HiveServer2
import org.apache.spark.sql.hive.HiveUtils
import org.apache.spark.sql.hive.thriftserver.ReflectionUtils.{getSuperField, setAncestorField}
import org.apache.spark.sql.hive.thriftserver.ui.{HiveThriftServer2EventManager, HiveThriftServer2Listener}
import org.apache.spark.status.ElementTrackingStore

/** The door of Spark's Thrift Server: of what a client's connection says only a database and settings of Spark come in.
  *
  * Hive takes more there, before any plan is looked at: properties of the whole JVM (`set:system:`), settings of the
  * server (`set:hiveconf:`), and variables whose values it fills in from environment, properties and settings. In the
  * package of Spark's server because its parts are not public. All but the opening of a session is left to `inner`.
  */
class InletSessions(server: HiveServer2, inner: SessionManager) extends SessionManager(server) {
  override def openSession(
      protocol: TProtocolVersion,
      user: String,
      password: String,
      address: String,
      settings: JavaMapOf[String, String],
      isImpersonated: Boolean,
      token: String
  ): SessionHandle =
    inner.openSession(protocol, user, password, address, InletSessions.admitted(settings), isImpersonated, token)

  override def openSession(
      protocol: TProtocolVersion,
      user: String,
      password: String,
      address: String,
      settings: JavaMapOf[String, String]
  ): SessionHandle = openSession(protocol, user, password, address, settings, false, null)

  override def closeSession(handle: SessionHandle): Unit = inner.closeSession(handle)
  override def getSession(handle: SessionHandle): HiveSession = inner.getSession(handle)
  override def getOperationManager: OperationManager = inner.getOperationManager
  override def submitBackgroundOperation(work: Runnable): Future[_] = inner.submitBackgroundOperation(work)
  override def getOpenSessionCount: Int = inner.getOpenSessionCount
}

object InletSessions {
  private val ofSpark = "(?:set:hiveconf:|set:hivevar:)?(spark\\..*)".r

  /** What of a connection's settings comes in. Clients send settings of Hive by themselves (a fetch size, say), which
    * mean nothing here and are left out.
    */
  def admitted(settings: JavaMapOf[String, String]): JavaMapOf[String, String] = {
    val given = Option(settings).fold(Map.empty[String, String])(_.asScala.toMap)
    new JavaMap(given.filter {
      case ("use:database", _) => true
      case (name @ ofSpark(setting), value) =>
        if (!ReadOnly.isFree(setting) || value.contains("${")) refuse(name)
        true
      case (name, _) =>
        if (name.trim.toLowerCase.matches("set:(system|env|metaconf):.*")) refuse(name)
        false
    }.asJava)
  }

  private def refuse(name: String) = throw new HiveSQLException(s"Inlet: $name is the server's to say")
}

object InletServer {
  def main(words: Array[String]): Unit = {
    PasswordFile.path // as it stands when the server begins
    new HiveServer2.ServerOptionsProcessor("InletServer").parse(words)
    SparkSQLEnv.init()
    val spark = SparkSQLEnv.sparkSession
    val context = spark.sparkContext
    Runtime.getRuntime.addShutdownHook(new Thread(() => SparkSQLEnv.stop()))
    val server = new HiveThriftServer2(spark)
    server.init(HiveUtils.newClientForExecution(context.conf, spark.sessionState.newHadoopConf()).conf)
    val service = getSuperField[CLIService](server, "cliService")
    setAncestorField(service, 1, "sessionManager", new InletSessions(server, service.getSessionManager))
    val store = context.statusStore.store.asInstanceOf[ElementTrackingStore]
    HiveThriftServer2.listener = new HiveThriftServer2Listener(store, context.conf, Some(server))
    HiveThriftServer2.eventManager = new HiveThriftServer2EventManager(context)
    context.addSparkListener(HiveThriftServer2.listener)
    server.start()
    Thread.currentThread().join() // spark-submit ends the session where this returns
  }
}
