c     Fortran 77 with mpif.h: point to point, completion, collective operations,
c     communicators, groups, datatypes, operations, topologies.
      program f77mix
      implicit none
      include 'mpif.h'
      integer rank, size, right, left
      integer ierr, total, i
      integer out(100), in(100), sum
      common /data/ rank, size, right, left, sum, out, in
      include 'oracle.inc'
      call mpi_init(ierr)
      call say('MPI_Init')
      call mpi_comm_rank(MPI_COMM_WORLD, rank, ierr)
      call say('MPI_Comm_rank comm=MPI_COMM_WORLD rank='//num(rank))
      call mpi_comm_size(MPI_COMM_WORLD, size, ierr)
      call say('MPI_Comm_size comm=MPI_COMM_WORLD size='//num(size))
      right = mod(rank + 1, size)
      left = mod(rank + size - 1, size)
      sum = 0
      do 10 i = 1, 100
         out(i) = 1000 * rank + i
         in(i) = 0
   10 continue

      call ptop
      call compl
      call coll
      call comms
      call types

      call mpi_reduce(sum, total, 1, MPI_INTEGER, MPI_SUM, 0,
     &     MPI_COMM_WORLD, ierr)
      call say('MPI_Reduce inplace=false count=1 type=MPI_INTEGER '//
     &     'op=MPI_SUM root=0 comm=MPI_COMM_WORLD')
      call mpi_finalize(ierr)
      call say('MPI_Finalize')
      call orwrit(rank)
      if (rank .eq. 0) print '(a,i0)', 'f77_mix: ok ', total
      end

      subroutine take(n)
      implicit none
      integer n, i
      integer rank, size, right, left
      integer out(100), in(100), sum
      common /data/ rank, size, right, left, sum, out, in
      do 10 i = 1, n
         sum = sum + in(i) * i
         in(i) = 0
   10 continue
      end

c     Everyone but the first receives before it sends.
      subroutine ptop
      implicit none
      include 'mpif.h'
      integer rank, size, right, left
      integer out(100), in(100), sum
      common /data/ rank, size, right, left, sum, out, in
      integer ierr, st(MPI_STATUS_SIZE), turn, n
      double precision x(9), y(9)
      logical flag
      include 'oracle.inc'
      do 10 turn = 1, 2
         if ((rank .eq. 0) .eqv. (turn .eq. 1)) then
            call mpi_send(out, 10, MPI_INTEGER, right, 7,
     &           MPI_COMM_WORLD, ierr)
            call say('MPI_Send count=10 type=MPI_INTEGER dest='//
     &           num(right)//' tag=7 comm=MPI_COMM_WORLD')
            call mpi_ssend(out, 11, MPI_REAL, right, 8,
     &           MPI_COMM_WORLD, ierr)
            call say('MPI_Ssend count=11 type=MPI_REAL dest='//
     &           num(right)//' tag=8 comm=MPI_COMM_WORLD')
         else
            call mpi_probe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, st, ierr)
            call say('MPI_Probe source=MPI_ANY_SOURCE tag=7 '//
     &           'comm=MPI_COMM_WORLD rsource='//num(st(MPI_SOURCE))//
     &           ' rtag='//num(st(MPI_TAG))//' bytes=40')
            call mpi_recv(in, 12, MPI_INTEGER, left, 7,
     &           MPI_COMM_WORLD, st, ierr)
            call say('MPI_Recv count=12 type=MPI_INTEGER source='//
     &           num(left)//' tag=7 comm=MPI_COMM_WORLD '//
     &           'rsource=null rtag=null bytes=40')
            call mpi_get_count(st, MPI_INTEGER, n, ierr)
            call say('MPI_Get_count type=MPI_INTEGER count='//num(n))
            sum = sum + n
            call take(10)
            call mpi_recv(in, 13, MPI_REAL, MPI_ANY_SOURCE,
     &           MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
            call say('MPI_Recv count=13 type=MPI_REAL '//
     &           'source=MPI_ANY_SOURCE tag=MPI_ANY_TAG '//
     &           'comm=MPI_COMM_WORLD rsource='//num(left)//
     &           ' rtag=8 bytes=44')
            call take(11)
         end if
   10 continue
      do 20 n = 1, 9
         x(n) = rank + 0.5d0 * n
   20 continue
      call mpi_sendrecv(x, 9, MPI_DOUBLE_PRECISION, right, 20 + rank,
     &     y, 18, MPI_DOUBLE_PRECISION, left, 20 + left,
     &     MPI_COMM_WORLD, st, ierr)
      call say('MPI_Sendrecv sendcount=9 '//
     &     'sendtype=MPI_DOUBLE_PRECISION dest='//num(right)//
     &     ' sendtag='//num(20 + rank)//' recvcount=18 '//
     &     'recvtype=MPI_DOUBLE_PRECISION source='//num(left)//
     &     ' recvtag='//num(20 + left)//' comm=MPI_COMM_WORLD '//
     &     'rsource=null rtag=null bytes=72')
      sum = sum + int(2 * y(9))
      call mpi_recv(in, 14, MPI_INTEGER, MPI_PROC_NULL, 9,
     &     MPI_COMM_WORLD, st, ierr)
      call say('MPI_Recv count=14 type=MPI_INTEGER '//
     &     'source=MPI_PROC_NULL tag=9 comm=MPI_COMM_WORLD '//
     &     'rsource=null rtag=null bytes=0')
      call mpi_iprobe(left, 99, MPI_COMM_WORLD, flag, st, ierr)
      call say('MPI_Iprobe source='//num(left)//' tag=99 '//
     &     'comm=MPI_COMM_WORLD flag=false rsource=null rtag=null '//
     &     'bytes=null times=1')
      if (flag) sum = sum + 1000000
      end

      subroutine compl
      implicit none
      include 'mpif.h'
      integer rank, size, right, left
      integer out(100), in(100), sum
      common /data/ rank, size, right, left, sum, out, in
      integer ierr, q(3), s(3), st(MPI_STATUS_SIZE, 3), at, n, i
      integer where(3), order(3), turn, fails
      logical flag
      include 'oracle.inc'
      data order /1, 2, 3/
      do 30 turn = 1, 4
         call mpi_irecv(in, 20, MPI_INTEGER, left, 31, MPI_COMM_WORLD,
     &        q(1), ierr)
         s(1) = slrecv(60)
         call say('MPI_Irecv count=20 type=MPI_INTEGER source='//
     &        num(left)//' tag=31 comm=MPI_COMM_WORLD request='//
     &        num(s(1)))
         q(2) = MPI_REQUEST_NULL
         s(2) = -1
         call mpi_isend(out, 15, MPI_INTEGER, right, 31,
     &        MPI_COMM_WORLD, q(3), ierr)
         s(3) = slsend()
         call say('MPI_Isend count=15 type=MPI_INTEGER dest='//
     &        num(right)//' tag=31 comm=MPI_COMM_WORLD request='//
     &        num(s(3)))
         if (turn .eq. 1) then
            call mpi_waitall(3, q, st, ierr)
            where(1) = 1
            where(2) = 3
            call say('MPI_Waitall n=3 requests='//trim(slots(3, s))//
     &           ' completed='//done(2, where, s,
     &           st(MPI_SOURCE, 1), st(MPI_TAG, 1)))
         else if (turn .eq. 2) then
            do 10 i = 1, 2
               call mpi_waitany(3, q, at, st, ierr)
               where(1) = at
               call say('MPI_Waitany n=3 requests='//trim(slots(3, s))
     &              //' completed='//done(1, where, s,
     &              st(MPI_SOURCE, 1), st(MPI_TAG, 1)))
               s(at) = -1
   10       continue
         else if (turn .eq. 3) then
            i = 0
   20       call mpi_waitsome(3, q, n, where, st, ierr)
c           At most two complete; sources and tags are not neighbours.
            order(1) = st(MPI_SOURCE, 1)
            order(2) = st(MPI_SOURCE, 2)
            in(50) = st(MPI_TAG, 1)
            in(51) = st(MPI_TAG, 2)
            call say('MPI_Waitsome n=3 requests='//trim(slots(3, s))//
     &           ' completed='//done(n, where, s, order, in(50)))
            in(50) = 0
            in(51) = 0
            i = i + n
            s(where(1)) = -1
            if (n .eq. 2) s(where(2)) = -1
            if (i .lt. 2) goto 20
         else
            fails = -1
   25       call mpi_test(q(1), flag, st, ierr)
            fails = fails + 1
            if (.not. flag) goto 25
            if (fails .gt. 0) call say('MPI_Test requests='//
     &           trim(slots(1, s))//' flag=false completed=[] times='//
     &           num(fails))
            where(1) = 1
            call say('MPI_Test requests='//trim(slots(1, s))//
     &           ' flag=true completed='//trim(done(1, where, s,
     &           st(MPI_SOURCE, 1), st(MPI_TAG, 1)))//' times=1')
            call mpi_wait(q(3), MPI_STATUS_IGNORE, ierr)
            call say('MPI_Wait requests='//trim(slots(1, s(3)))//
     &           ' completed='//done(1, where, s(3), where, where))
         end if
         call take(15)
   30 continue
      call mpi_send_init(out, 4, MPI_INTEGER, MPI_PROC_NULL, 32,
     &     MPI_COMM_WORLD, q(1), ierr)
      s(1) = slsini()
      call say('MPI_Send_init count=4 type=MPI_INTEGER '//
     &     'dest=MPI_PROC_NULL tag=32 comm=MPI_COMM_WORLD request='//
     &     num(s(1)))
      call mpi_start(q(1), ierr)
      call say('MPI_Start request='//num(s(1)))
      call mpi_wait(q(1), st, ierr)
      where(1) = 1
      call say('MPI_Wait requests='//trim(slots(1, s))//
     &     ' completed='//done(1, where, s, where, where))
      call mpi_request_free(q(1), ierr)
      call say('MPI_Request_free request='//num(s(1)))
      call slfree(s(1))
      end

      subroutine coll
      implicit none
      include 'mpif.h'
      integer rank, size, right, left
      integer out(100), in(100), sum
      common /data/ rank, size, right, left, sum, out, in
      integer ierr, root
      double precision x(2)
      include 'oracle.inc'
      root = size - 1
      call mpi_barrier(MPI_COMM_WORLD, ierr)
      call say('MPI_Barrier comm=MPI_COMM_WORLD')
      if (rank .eq. root) in(3) = 17
      call mpi_bcast(in, 6, MPI_INTEGER, root, MPI_COMM_WORLD, ierr)
      call say('MPI_Bcast count=6 type=MPI_INTEGER root='//num(root)//
     &     ' comm=MPI_COMM_WORLD')
      call take(6)
      call mpi_gather(out, 3, MPI_INTEGER, in, 3, MPI_INTEGER, root,
     &     MPI_COMM_WORLD, ierr)
      if (rank .eq. root) then
         call say('MPI_Gather inplace=false sendcount=3 '//
     &        'sendtype=MPI_INTEGER recvcount=3 recvtype=MPI_INTEGER '//
     &        'root='//num(root)//' comm=MPI_COMM_WORLD')
      else
         call say('MPI_Gather inplace=false sendcount=3 '//
     &        'sendtype=MPI_INTEGER recvcount=0 recvtype=null root='//
     &        num(root)//' comm=MPI_COMM_WORLD')
      end if
      call take(100)
      call mpi_alltoall(out, 2, MPI_INTEGER, in, 2, MPI_INTEGER,
     &     MPI_COMM_WORLD, ierr)
      call say('MPI_Alltoall inplace=false sendcount=2 '//
     &     'sendtype=MPI_INTEGER recvcount=2 recvtype=MPI_INTEGER '//
     &     'comm=MPI_COMM_WORLD')
      call take(100)
      x(1) = rank + 1
      x(2) = -rank
      call mpi_allreduce(MPI_IN_PLACE, x, 2, MPI_DOUBLE_PRECISION,
     &     MPI_MAX, MPI_COMM_WORLD, ierr)
      call say('MPI_Allreduce inplace=true count=2 '//
     &     'type=MPI_DOUBLE_PRECISION op=MPI_MAX comm=MPI_COMM_WORLD')
      sum = sum + int(x(1) + x(2))
      call mpi_scan(out, in, 5, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD,
     &     ierr)
      call say('MPI_Scan inplace=false count=5 type=MPI_INTEGER '//
     &     'op=MPI_SUM comm=MPI_COMM_WORLD')
      call take(100)
      end

      subroutine comms
      implicit none
      include 'mpif.h'
      integer rank, size, right, left
      integer out(100), in(100), sum
      common /data/ rank, size, right, left, sum, out, in
      integer ierr, half, cart, world, some, dims(2), coords(2)
      integer color, from, to, first(1), outer, inter, n
      logical periods(2), remain(2), flag
      include 'oracle.inc'
      color = MPI_UNDEFINED
      if (rank .ne. 0) color = mod(rank, 2) + 5
      call mpi_comm_split(MPI_COMM_WORLD, color, 40 - rank, half, ierr)
      if (rank .eq. 0) then
         call say('MPI_Comm_split comm=MPI_COMM_WORLD '//
     &        'color=MPI_UNDEFINED key=40 newcomm=null')
      else
         call say('MPI_Comm_split comm=MPI_COMM_WORLD color='//
     &        num(color)//' key='//num(40 - rank)//' newcomm=new:half')
         call mpi_allreduce(rank, n, 1, MPI_INTEGER, MPI_SUM, half,
     &        ierr)
         call say('MPI_Allreduce inplace=false count=1 '//
     &        'type=MPI_INTEGER op=MPI_SUM comm=half')
         sum = sum + n
         call mpi_comm_free(half, ierr)
         call say('MPI_Comm_free freecomm=half')
      end if
      call mpi_comm_group(MPI_COMM_WORLD, world, ierr)
      call say('MPI_Comm_group comm=MPI_COMM_WORLD newgroup=new:world')
      first(1) = 0
      call mpi_group_excl(world, 1, first, some, ierr)
      call say('MPI_Group_excl group=world n=1 ranks=[0] '//
     &     'newgroup=new:some')
      call mpi_group_size(some, n, ierr)
      call say('MPI_Group_size group=some size='//num(n))
      sum = sum + n
      call mpi_comm_create(MPI_COMM_WORLD, some, outer, ierr)
      if (rank .eq. 0) then
         call say('MPI_Comm_create comm=MPI_COMM_WORLD group=some '//
     &        'newcomm=null')
      else
         call say('MPI_Comm_create comm=MPI_COMM_WORLD group=some '//
     &        'newcomm=new:outer')
         call mpi_comm_free(outer, ierr)
         call say('MPI_Comm_free freecomm=outer')
      end if
      call mpi_group_free(some, ierr)
      call say('MPI_Group_free freegroup=some')
      call mpi_group_free(world, ierr)
      call say('MPI_Group_free freegroup=world')

      dims(1) = 0
      dims(2) = 0
      call mpi_dims_create(size, 2, dims, ierr)
      call say('MPI_Dims_create nnodes='//num(size)//' ndims=2 dims='//
     &     list(2, dims))
      periods(1) = .false.
      periods(2) = .true.
      call mpi_cart_create(MPI_COMM_WORLD, 2, dims, periods, .true.,
     &     cart, ierr)
      call say('MPI_Cart_create comm=MPI_COMM_WORLD ndims=2 dims='//
     &     trim(list(2, dims))//' periods=[false,true] reorder=1 '//
     &     'newcomm=new:cart')
      call mpi_comm_rank(cart, n, ierr)
      call say('MPI_Comm_rank comm=cart rank='//num(n))
      call mpi_cart_coords(cart, n, 2, coords, ierr)
      call say('MPI_Cart_coords comm=cart rank='//trim(num(n))//
     &     ' maxdims=2 coords='//list(2, coords))
      call mpi_cart_shift(cart, 0, 1, from, to, ierr)
      call say('MPI_Cart_shift comm=cart direction=0 disp=1 source='//
     &     rnk(from)//' dest='//rnk(to))
      call mpi_sendrecv_replace(n, 1, MPI_INTEGER, to, 5, from, 5,
     &     cart, MPI_STATUS_IGNORE, ierr)
      if (from .eq. MPI_PROC_NULL) then
         call say('MPI_Sendrecv_replace count=1 type=MPI_INTEGER '//
     &        'dest='//rnk(to)//' sendtag=5 source=MPI_PROC_NULL '//
     &        'recvtag=5 comm=cart rsource=null rtag=null bytes=0')
      else
         call say('MPI_Sendrecv_replace count=1 type=MPI_INTEGER '//
     &        'dest='//rnk(to)//' sendtag=5 source='//num(from)//
     &        ' recvtag=5 comm=cart rsource=null rtag=null bytes=4')
      end if
      sum = sum + n
      remain(1) = .true.
      remain(2) = .false.
      call mpi_cart_sub(cart, remain, half, ierr)
      call say('MPI_Cart_sub comm=cart remain=[true,false] '//
     &     'newcomm=new:column')
      call mpi_comm_free(half, ierr)
      call say('MPI_Comm_free freecomm=column')
      call mpi_comm_free(cart, ierr)
      call say('MPI_Comm_free freecomm=cart')

c     Between rank 0 and the others.
      color = 0
      if (rank .gt. 0) color = 1
      call mpi_comm_split(MPI_COMM_WORLD, color, rank, half, ierr)
      call say('MPI_Comm_split comm=MPI_COMM_WORLD color='//num(color)
     &     //' key='//num(rank)//' newcomm=new:side')
      call mpi_intercomm_create(half, 0, MPI_COMM_WORLD, 1 - color, 66,
     &     inter, ierr)
      call say('MPI_Intercomm_create comm=side leader=0 '//
     &     'peercomm=MPI_COMM_WORLD remoteleader='//num(1 - color)//
     &     ' tag=66 newcomm=new:inter')
      call mpi_comm_test_inter(inter, flag, ierr)
      call say('MPI_Comm_test_inter comm=inter flag=true')
      if (flag) sum = sum + 1
      n = 12
      if (rank .eq. 0) then
         call mpi_bcast(n, 1, MPI_INTEGER, MPI_ROOT, inter, ierr)
         call say('MPI_Bcast count=1 type=MPI_INTEGER root=MPI_ROOT '//
     &        'comm=inter')
      else
         n = 0
         call mpi_bcast(n, 1, MPI_INTEGER, 0, inter, ierr)
         call say('MPI_Bcast count=1 type=MPI_INTEGER root=0 '//
     &        'comm=inter')
      end if
      sum = sum + n
      call mpi_comm_free(inter, ierr)
      call say('MPI_Comm_free freecomm=inter')
      call mpi_comm_free(half, ierr)
      call say('MPI_Comm_free freecomm=side')
      end

c     Keeps the larger of two integers.
      subroutine larger(a, b, n, type)
      implicit none
      integer n, a(n), b(n), type, i
      do 10 i = 1, n
         if (a(i) .gt. b(i)) b(i) = a(i)
   10 continue
      end

      subroutine types
      implicit none
      include 'mpif.h'
      integer rank, size, right, left
      integer out(100), in(100), sum
      common /data/ rank, size, right, left, sum, out, in
      integer ierr, t, at, op, parts(2), lengths(2)
      integer (kind=MPI_ADDRESS_KIND) places(2), lb, extent
      character buffer(200)
      double precision time
      logical commute
      external larger
      include 'oracle.inc'
      call mpi_type_vector(3, 2, 5, MPI_INTEGER, t, ierr)
      call say('MPI_Type_vector count=3 blocklength=2 stride=5 '//
     &     'type=MPI_INTEGER newtype=new:vector')
      call mpi_type_commit(t, ierr)
      call say('MPI_Type_commit committype=vector')
      call mpi_sendrecv(out, 2, t, right, 4, in, 12, MPI_INTEGER, left,
     &     4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call say('MPI_Sendrecv sendcount=2 sendtype=vector dest='//
     &     num(right)//' sendtag=4 recvcount=12 recvtype=MPI_INTEGER '//
     &     'source='//num(left)//' recvtag=4 comm=MPI_COMM_WORLD '//
     &     'rsource=null rtag=null bytes=48')
      call take(12)
      call mpi_type_free(t, ierr)
      call say('MPI_Type_free freetype=vector')

      call mpi_get_address(out, places(1), ierr)
      call say('MPI_Get_address')
      call mpi_get_address(out(13), places(2), ierr)
      call say('MPI_Get_address')
      lengths(1) = 3
      lengths(2) = 2
      parts(1) = MPI_INTEGER
      parts(2) = MPI_REAL
      call mpi_type_create_struct(2, lengths, places, parts, t, ierr)
      call say('MPI_Type_create_struct count=2 blocklengths=[3,2] '//
     &     'displacements=[0,48] types=["MPI_INTEGER","MPI_REAL"] '//
     &     'newtype=new:struct')
      call mpi_type_commit(t, ierr)
      call say('MPI_Type_commit committype=struct')
      call mpi_sendrecv(MPI_BOTTOM, 1, t, right, 6, in, 20, MPI_BYTE,
     &     left, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call say('MPI_Sendrecv sendcount=1 sendtype=struct dest='//
     &     num(right)//' sendtag=6 recvcount=20 recvtype=MPI_BYTE '//
     &     'source='//num(left)//' recvtag=6 comm=MPI_COMM_WORLD '//
     &     'rsource=null rtag=null bytes=20')
      call take(5)
      call mpi_type_get_extent(t, lb, extent, ierr)
      call say('MPI_Type_get_extent type=struct lb='//trim(lng(lb))//
     &     ' extent='//lng(extent))
      call mpi_type_free(t, ierr)
      call say('MPI_Type_free freetype=struct')

      at = 0
      call mpi_pack(out, 7, MPI_INTEGER, buffer, 200, at,
     &     MPI_COMM_WORLD, ierr)
      call say('MPI_Pack count=7 type=MPI_INTEGER size=200 '//
     &     'comm=MPI_COMM_WORLD')
      at = 0
      call mpi_unpack(buffer, 190, at, in, 7, MPI_INTEGER,
     &     MPI_COMM_WORLD, ierr)
      call say('MPI_Unpack size=190 count=7 type=MPI_INTEGER '//
     &     'comm=MPI_COMM_WORLD')
      call take(7)

      call mpi_op_create(larger, .true., op, ierr)
      call say('MPI_Op_create commute=1 newop=new:larger')
      call mpi_op_commutative(op, commute, ierr)
      call say('MPI_Op_commutative op=larger commute=1')
      if (commute) sum = sum + 1
      call mpi_reduce(out, in, 8, MPI_INTEGER, op, size - 1,
     &     MPI_COMM_WORLD, ierr)
      call say('MPI_Reduce inplace=false count=8 type=MPI_INTEGER '//
     &     'op=larger root='//num(size - 1)//' comm=MPI_COMM_WORLD')
      call take(8)
      call mpi_op_free(op, ierr)
      call say('MPI_Op_free freeop=larger')

      time = mpi_wtime()
      call say('MPI_Wtime times=1')
      if (time .lt. 0) sum = sum + 1000000
      end
